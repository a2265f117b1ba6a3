"""Policies, paces and what was issued today: what an app may still ask people about."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import event
from structlog.testing import capture_logs
from typer.testing import CliRunner

from tests.integration.store_examples import FLAG_BELOW, OTHER_IDENTITY, advance, age, prepared, rows, scored, selected
from worker.commands.review import review
from worker.errors import Stopped, WorkerError
from worker.review.usual_day import renew_usual_days, usual_day
from worker.rules.allowance import Allowance, CommonAllowance, UsualDay
from worker.rules.policy import DEFAULT_POLICY, Objective
from worker.store.sampling import Traffic
from worker.store.store import Store, open_store

PACES = "SELECT app, scorer_id, expected_flagged, expected_sampled, spread FROM review_paces ORDER BY app, scorer_id"
OWN = replace(DEFAULT_POLICY, app="shop", daily_sentences=7, objective=Objective.COST, target=12.0, reviewers=3)
OTHERS = replace(DEFAULT_POLICY, daily_sentences=3)


# --- what is read once a batch ---


def test_an_app_follows_its_own_policy_else_that_of_the_others_else_the_built_in_one(store: Store) -> None:
    scorer_id, _ = prepared(store)
    apps = ["desk", "shop"]
    assert store.sampling.allowances(scorer_id, apps) == dict.fromkeys(apps, Allowance(DEFAULT_POLICY))
    store.policies.set(OTHERS)
    store.policies.set(OWN)
    assert store.sampling.allowances(scorer_id, apps) == {"desk": Allowance(OTHERS), "shop": Allowance(OWN)}
    assert [store.policies.in_force(app) for app in (None, *apps)] == [OTHERS, OTHERS, OWN]
    assert store.policies.clear("shop")
    assert not store.policies.clear("shop")
    assert store.policies.clear(None)
    assert store.sampling.allowances(scorer_id, apps) == dict.fromkeys(apps, Allowance(DEFAULT_POLICY))
    assert store.sampling.allowances(scorer_id, []) == {}


def test_what_an_app_issued_on_this_utc_day_counts_by_reason_and_a_pace_is_that_of_the_scorer(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    gaps = [0.01, 0.02, 0.9]
    batch = [
        selected(scored(0, "today", gaps, threshold), indexes=(0, 2)),
        selected(scored(1, "today too", gaps, threshold), indexes=(0, 1)),
        selected(scored(2, "yesterday", gaps, threshold), indexes=(0, 1, 2)),
        selected(scored(3, "another", gaps, threshold, app="desk"), indexes=(2,)),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 4)])
    midnight = "date_trunc('day', now(), 'UTC')"
    rows(database_url, f"UPDATE review_tasks SET created_at = {midnight} WHERE interaction_id = 'today'")
    late = f"{midnight} - interval '1 microsecond'"
    rows(database_url, f"UPDATE review_tasks SET created_at = {late} WHERE interaction_id = 'yesterday'")
    usual = UsualDay(3.0, 40.0, 0.7)
    store.sampling.set_usual_days({("shop", scorer_id): UsualDay(1.0, 1.0, 1.0)})
    store.sampling.set_usual_days({("shop", scorer_id): usual})
    found = store.sampling.allowances(scorer_id, ["shop", "desk"])
    assert found == {"shop": Allowance(DEFAULT_POLICY, usual, 3, 1), "desk": Allowance(DEFAULT_POLICY, None, 0, 1)}
    other_id = store.scorers.register(OTHER_IDENTITY)
    assert store.sampling.allowances(other_id, ["shop"]) == {"shop": Allowance(DEFAULT_POLICY, None, 3, 1)}


def test_what_apps_without_a_policy_of_their_own_issued_today_counts_together(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    gaps = [0.01, 0.02, 0.9]
    batch = [
        selected(scored(number, f"id-{number}", gaps, threshold, app=app), indexes=(0, 2))
        for number, app in enumerate(("desk", "help", "shop", "old"))
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 4)])
    rows(database_url, "UPDATE review_tasks SET created_at = created_at - interval '1 day' WHERE app = 'old'")
    assert store.sampling.common_allowance() == CommonAllowance(DEFAULT_POLICY, 3, 3)
    store.policies.set(OWN)
    store.policies.set(OTHERS)
    assert store.sampling.common_allowance() == CommonAllowance(OTHERS, 2, 2)


# --- what a usual day holds ---


def settle_answers(store: Store, app: str, answers: int, start: int = 0) -> list[float]:
    """Settle answers of three sentences, one of them without a score; gives the gaps."""
    scorer_id, threshold = prepared(store)
    gaps = [[number / 50, None, 0.05 + number / 20] for number in range(answers)]
    batch = [
        scored(start + number, f"{app}-{number}", scores, threshold, app=app) for number, scores in enumerate(gaps)
    ]
    store.settlements.settle(scorer_id, batch, [advance(start, start + answers)])
    return [gap for scores in gaps for gap in scores if gap is not None]


def test_traffic_is_that_of_the_last_week_and_a_young_app_has_had_a_day(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    settle_answers(store, "shop", 6)
    assert store.sampling.traffic(["shop", "desk"]) == (Traffic("shop", scorer_id, 12.0),)
    age(database_url, "shop-0", 4)
    (four_days,) = store.sampling.traffic(["shop"])
    assert four_days.sentences_a_day == pytest.approx(3.0, rel=1e-3)
    age(database_url, "shop-1", 8)
    (without,) = store.sampling.traffic(["shop"])
    assert without.sentences_a_day == pytest.approx(10 / 4, rel=1e-3)
    assert len(store.sampling.recent_scores([("shop", scorer_id)], limit=100)["shop", scorer_id]) == 10
    assert store.sampling.traffic(["desk"]) == ()


def test_the_newest_sentences_are_the_sample(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    gaps = settle_answers(store, "shop", 6)
    for number in range(4):
        age(database_url, f"shop-{number}", 2)
    assert sorted(store.sampling.recent_scores([("shop", scorer_id)], limit=4)["shop", scorer_id]) == sorted(gaps[8:])


def test_the_job_brings_the_paces_of_every_app_and_scorer_up_to_date(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    assert renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event()) == ""
    shop = settle_answers(store, "shop", 8)
    desk = settle_answers(store, "desk", 3, start=8)
    other_id, threshold = prepared(store, OTHER_IDENTITY)
    store.settlements.settle(other_id, [scored(11, "shop-0", [0.4, 0.5], threshold)], [advance(11, 12)])
    assert renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event()) == "3 usual days"
    expected = [("desk", scorer_id, desk), ("shop", scorer_id, shop), ("shop", other_id, [0.4, 0.5])]
    for row, (app, judge, gaps) in zip(rows(database_url, PACES), expected, strict=True):
        usual = usual_day(np.array(gaps), float(len(gaps)), FLAG_BELOW)
        numbers = (usual.flagged, usual.sampled, usual.spread)
        assert tuple(row.values()) == (app, judge, *map(pytest.approx, numbers))
    assert renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event()) == "3 usual days"
    assert len(rows(database_url, PACES)) == 3


def test_the_job_runs_as_many_statements_for_many_apps_as_for_one(store: Store) -> None:
    scorer_id, threshold = prepared(store)

    def statements() -> int:
        engine = store.sampling.database._engine
        counted: list[object] = []

        def note(*_: object) -> None:
            counted.append(None)

        event.listen(engine, "before_cursor_execute", note)
        renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event())
        event.remove(engine, "before_cursor_execute", note)
        return len(counted)

    settle_answers(store, "shop", 1)
    for_one = statements()
    batch = [scored(number, f"id-{number}", [0.1, 0.9], threshold, app=f"app-{number}") for number in range(1, 60)]
    store.settlements.settle(scorer_id, batch, [advance(1, 60)])
    assert statements() == for_one


def test_an_app_that_takes_too_long_keeps_no_other_from_its_pace(store: Store, database_url: str) -> None:
    for number, app in enumerate(("a", "slow", "z")):
        settle_answers(store, app, 1, start=number)
    rows(
        database_url,
        """
        CREATE FUNCTION slow_app() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.app = 'slow' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$;
        CREATE TRIGGER slow_app BEFORE INSERT ON review_paces FOR EACH ROW EXECUTE FUNCTION slow_app()
        """,
    )
    hasty = f"{database_url}&options=-c%20statement_timeout%3D1s"
    with (
        open_store(hasty, application_name="gasp-test") as one,
        capture_logs() as events,
        pytest.raises(WorkerError, match="1 of 3 apps failed"),
    ):
        renew_usual_days(one.sampling, one.thresholds, one.interactions, threading.Event())
    assert [row["app"] for row in rows(database_url, PACES)] == ["a", "z"]
    assert [entry["app"] for entry in events] == ["slow"]


def test_the_job_leaves_off_when_it_is_told_to(store: Store) -> None:
    settle_answers(store, "shop", 1)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        renew_usual_days(store.sampling, store.thresholds, store.interactions, stop)


# --- the command ---


@pytest.fixture
def gasp(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs ``gasp-worker review policy`` with arguments; gives what it prints."""
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)

    def run(*arguments: str, status: int = 0) -> str:
        done = CliRunner().invoke(review, ["policy", *arguments])
        assert done.exit_code == status, done.output
        return done.output

    return run


def test_the_command_shows_sets_and_forgets_policies(gasp: Callable[..., str], store: Store) -> None:
    _, built_in = gasp().splitlines()
    assert built_in.split() == ["every", "other", "app", "50", "0.4", "recall", "0.8", "0.2", "1", "0.15"]
    gasp("--daily-sentences", "3")
    assert store.policies.all() == (OTHERS,)
    shop = ("--app", "shop", "--daily-sentences", "7", "--objective", "cost", "--target", "12", "--reviewers", "3")
    (shown,) = json.loads(gasp(*shop, "--json"))
    assert shown == {
        "app": "shop",
        "daily_sentences": 7,
        "sampled_share": 0.4,
        "objective": "cost",
        "target": 12.0,
        "attribution_share": 0.2,
        "reviewers": 3,
        "flag_share": 0.15,
    }
    assert store.policies.all() == (OTHERS, OWN)
    gasp("--app", "shop", "--sampled-share", "0.5", "--flag-share", "0.1")
    assert store.policies.in_force("shop") == replace(OWN, sampled_share=0.5, flag_share=0.1)
    assert [line.split()[0] for line in gasp().splitlines()] == ["app", "every", "shop"]
    gasp("--app", "shop", "--clear")
    assert store.policies.all() == (OTHERS,)


def test_the_command_says_at_once_what_a_policy_breaks(gasp: Callable[..., str], store: Store) -> None:
    assert "nobody sees" not in gasp("--app", "shop", "--sampled-share", "0.5")
    assert "shop: none of the 50 sentences a day is unflagged" in gasp("--app", "shop", "--sampled-share", "0")
    assert "too_few_unflagged" in gasp("--app", "desk", "--daily-sentences", "1")
    assert store.policies.in_force("desk").daily_sentences == 1
    said = gasp()
    assert [said.count(f"{app}: none of the") for app in ("shop", "desk", "every other app")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--objective", "cost"), "wants a --target"),
        (("--objective", "recall", "--target", "1.5"), "target of recall lies in"),
        (("--sampled-share", "2"), "sampled-share"),
        (("--reviewers", "10"), "reviewers"),
        (("--flag-share", "1.5"), "flag-share"),
        (("--flag-share", "0"), "flag_share lies in (0, 1)"),
        (("--clear", "--reviewers", "2"), "set and forgotten"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    gasp: Callable[..., str], store: Store, arguments: tuple[str, ...], said: str
) -> None:
    assert said in gasp(*arguments, status=2)
    assert store.policies.all() == ()
