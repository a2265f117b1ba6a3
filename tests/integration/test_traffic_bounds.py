"""From the scores of an app without labels to bounds that flag the lowest share of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from gasp_core.detectors.fused_model import Term
from tests.integration.store_examples import (
    FLAG_BELOW,
    OTHER_IDENTITY,
    advance,
    age,
    prepared,
    rows,
    scored,
)
from worker.cli import app as gasp_worker
from worker.errors import Stopped, WorkerError
from worker.jobs.maintenance import maintenance_jobs
from worker.jobs.recalibration import SCHEDULE, Recalibrator
from worker.jobs.traffic_bounds import TrafficFollower
from worker.rules.policy import DEFAULT_POLICY, Objective
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.verdict import Threshold
from worker.store.store import Store
from worker.store.threshold_versions import Proposal, Version

SENTENCES = 5
ENTERED = """
    SELECT coalesce(t.app, '*') || '/' || t.version AS name, a.reason, a.activated_by
    FROM threshold_activations a JOIN thresholds t ON t.id = a.threshold_id ORDER BY a.id
"""
FLAGGED = """
    SELECT avg(s.flagged::int)::float AS share FROM sentences s JOIN verdicts v ON v.id = s.verdict_id
    JOIN interactions i ON i.id = v.interaction_pk WHERE i.app = %(app)s AND i.interaction_id LIKE %(ids)s
"""


class Traffic:
    """Answers of apps, judged by what is in force when they come."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.offset = 0

    def comes(
        self,
        answers: int,
        *,
        app: str = "shop",
        mean: float = 0.0,
        batch: str = "first",
        scorer_id: int = 1,
        terms: bool = False,
    ) -> None:
        """So many answers of five sentences, whose scores lie within 0.1 of the mean, with terms or without."""
        in_force = self.store.thresholds.in_force(scorer_id, [app])
        threshold = in_force.get(app) or in_force[None]
        rng = np.random.default_rng(self.offset)
        drawn = rng.uniform(mean - 0.1, mean + 0.1, (answers, SENTENCES))
        read = rng.normal(size=(answers, SENTENCES, len(TERMS))).astype(np.float32).tolist()
        found = [
            scored(
                self.offset + number,
                f"{batch}-{number}",
                list(map(float, row)),
                threshold,
                app=app,
                terms=[tuple(one) for one in read[number]] if terms else None,
            )
            for number, row in enumerate(drawn)
        ]
        end = self.offset + answers
        self.store.settlements.settle(scorer_id, found, [advance(self.offset, end)])
        self.offset = end


@pytest.fixture
def traffic(store: Store) -> Traffic:
    prepared(store)
    return Traffic(store)


def scheduled(store: Store) -> str:
    """What the job says that it did."""
    (job,) = (job for job in maintenance_jobs(store) if job.name == "follow_traffic")
    return job.work(threading.Event())


def follow(store: Store) -> list[Version]:
    return list(TrafficFollower.of(store).follow(threading.Event()))


def own(store: Store, app: str = "shop", scorer_id: int = 1) -> Threshold | None:
    return store.thresholds.in_force(scorer_id).get(app)


def entered(url: str) -> list[tuple[str, str, str]]:
    return [(row["name"], row["reason"], row["activated_by"]) for row in rows(url, ENTERED)]


def flagged_share(url: str, app: str, batch: str) -> float:
    (row,) = rows(url, FLAGGED, app=app, ids=f"{batch}-%")
    return float(row["share"])


@pytest.mark.parametrize(("mean", "by_the_seed"), [(FLAG_BELOW + 5, 0.0), (FLAG_BELOW - 5, 1.0)])
def test_an_app_whose_scores_lie_all_on_one_side_of_the_seed_has_its_lowest_15_percent_flagged(
    store: Store, database_url: str, traffic: Traffic, mean: float, by_the_seed: float
) -> None:
    traffic.comes(100, mean=mean)
    assert flagged_share(database_url, "shop", "first") == by_the_seed
    assert scheduled(store) == "1 bounds"
    traffic.comes(400, mean=mean, batch="then")
    assert flagged_share(database_url, "shop", "then") == pytest.approx(0.15, abs=0.04)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    version = store.thresholds.versions()[-1]
    assert (version.name, version.learned_from, version.curve) == ("shop/1", "traffic", None)
    assert version.note == f"flags the lowest 15 % of 500 scores of 100 answers, {today} to {today}"
    assert entered(database_url) == [("*/1", "seeded", "worker"), ("shop/1", "traffic", "follow_traffic")]
    (shown,) = rows(database_url, "SELECT learned_from, reason, note FROM v_threshold_history WHERE app = 'shop'")
    assert shown == {"learned_from": "traffic", "reason": "traffic", "note": version.note}


def test_until_it_has_enough_answers_an_app_is_judged_by_the_seed(store: Store, traffic: Traffic) -> None:
    traffic.comes(39)
    assert scheduled(store) == ""
    traffic.comes(1, batch="one more")
    assert scheduled(store) == "1 bounds"


def test_a_bound_moves_with_the_traffic_and_stays_while_the_traffic_does(store: Store, traffic: Traffic) -> None:
    traffic.comes(100)
    assert scheduled(store) == "1 bounds"
    assert scheduled(store) == ""
    traffic.comes(100, batch="alike")
    assert scheduled(store) == ""
    traffic.comes(200, mean=1.0, batch="higher")
    (moved,) = follow(store)
    assert moved.name == "shop/2"
    assert scheduled(store) == ""


def test_what_was_replaced_or_is_older_than_four_weeks_is_no_traffic(
    store: Store, database_url: str, traffic: Traffic
) -> None:
    traffic.comes(60)
    for number in range(20):
        age(database_url, f"first-{number}", 29)
    rows(database_url, "UPDATE interactions SET is_current = false WHERE interaction_id = 'first-30'")
    found = store.recent_scores.of("shop", 1)
    assert found is not None
    assert (len(found.scores), len(found.lowest)) == (39 * SENTENCES, 39)
    newest = store.recent_scores.of("shop", 1, max_sentences=10)
    assert newest is not None
    assert len(newest.scores) == 10
    assert store.recent_scores.of("nobody", 1) is None


def test_only_apps_with_enough_answers_are_looked_at(store: Store, traffic: Traffic) -> None:
    assert store.interactions.apps_with(1, 28) == []
    for app, answers in (("a", 3), ("b", 5), ("c", 2)):
        traffic.comes(answers, app=app)
    assert store.interactions.apps_with(3, 28) == ["a", "b"]
    assert store.interactions.apps_with(6, 28) == []


def test_each_app_and_each_scorer_has_bounds_of_its_own(store: Store, traffic: Traffic) -> None:
    other, _ = prepared(store, OTHER_IDENTITY, partitions=0)
    traffic.comes(60, mean=3.0)
    traffic.comes(60, app="desk", mean=-3.0)
    assert scheduled(store) == "2 bounds"
    assert own(store, "shop", other) is None
    traffic.comes(60, mean=9.0, batch="under another", scorer_id=other)
    assert [version.name for version in follow(store)] == ["shop/1"]
    found = [own(store, "desk"), own(store, "shop"), own(store, "shop", other)]
    assert [round(one.flag_below) for one in found if one is not None] == [-3, 3, 9]


def test_the_share_is_that_of_the_policy_in_force(store: Store, database_url: str, traffic: Traffic) -> None:
    store.policies.set(replace(DEFAULT_POLICY, flag_share=0.3))
    store.policies.set(replace(DEFAULT_POLICY, app="desk", objective=Objective.BUDGET, target=25.0))
    traffic.comes(100)
    traffic.comes(100, app="desk")
    assert scheduled(store) == "2 bounds"
    notes = rows(database_url, "SELECT note FROM thresholds WHERE app IS NOT NULL ORDER BY app")
    assert [row["note"][:24] for row in notes] == ["flags the lowest 5 % of ", "flags the lowest 30 % of"]


# --- beside people and labels ---


def by_hand(store: Store, app: str | None) -> Version:
    return store.thresholds.set_by_hand(Proposal(app, 1, 0.4, 0.4, "manual", "by hand"), "ada")


def calibrated(store: Store, app: str | None) -> Version:
    added = store.thresholds.add(Proposal(app, 1, 0.4, 0.4, "calibrated", "from labels"))
    rows_ = store.thresholds.activate(added.id, "recalibration")
    assert rows_ is not None
    return rows_


def long_ago(url: str) -> None:
    rows(url, "UPDATE threshold_activations SET activated_at = activated_at - interval '30 days'")


@pytest.mark.parametrize("choose", [by_hand, calibrated])
def test_what_a_person_set_or_labels_gave_the_app_is_never_replaced(
    store: Store, database_url: str, traffic: Traffic, choose: Callable[[Store, str | None], Version]
) -> None:
    traffic.comes(60)
    chosen = choose(store, "shop")
    long_ago(database_url)
    assert scheduled(store) == ""
    found = own(store)
    assert found is not None
    assert found.id == chosen.id


def test_labels_replace_what_followed_the_traffic(store: Store, traffic: Traffic) -> None:
    traffic.comes(60)
    assert scheduled(store) == "1 bounds"
    assert calibrated(store, "shop").name == "shop/2"
    traffic.comes(100, mean=5.0, batch="then")
    assert scheduled(store) == ""
    undone = store.thresholds.roll_back("shop", 1, "ada")
    assert undone is not None
    assert undone.back_to is not None
    assert undone.back_to.name == "shop/1"


def test_the_labels_of_other_apps_say_less_than_the_apps_own_traffic(store: Store, traffic: Traffic) -> None:
    calibrated(store, None)
    traffic.comes(60)
    assert scheduled(store) == "1 bounds"


def test_what_a_person_set_for_all_apps_holds_for_those_that_followed_their_traffic(
    store: Store, database_url: str, traffic: Traffic
) -> None:
    traffic.comes(60)
    traffic.comes(60, app="desk")
    calibrated(store, "desk")
    assert scheduled(store) == "1 bounds"
    default = by_hand(store, None)
    in_force = store.thresholds.in_force(1)
    assert (set(in_force), in_force[None].id) == ({None, "desk"}, default.id)
    assert entered(database_url)[-2:] == [("shop/1", "withdrawn", "follow_traffic"), ("*/2", "manual", "ada")]
    long_ago(database_url)
    assert scheduled(store) == ""
    # Once it is taken back, nothing of the app's own was a person's choice.
    assert store.thresholds.roll_back(None, 1, "ada") is not None
    assert [version.name for version in follow(store)] == ["shop/2"]


def test_what_a_person_rolled_back_is_left_alone_for_seven_days(
    store: Store, database_url: str, traffic: Traffic
) -> None:
    traffic.comes(60)
    assert scheduled(store) == "1 bounds"
    assert store.thresholds.roll_back("shop", 1, "ada") is not None
    assert (scheduled(store), own(store)) == ("", None)
    long_ago(database_url)
    assert [version.name for version in follow(store)] == ["shop/2"]


def test_a_version_that_came_into_force_meanwhile_is_not_replaced(store: Store, database_url: str) -> None:
    _, default = prepared(store)
    chosen = by_hand(store, "shop")
    before = entered(database_url)
    assert store.thresholds.follow_traffic(Proposal("shop", 1, 0.2, 0.2, "traffic", "late"), default.id) is None
    assert entered(database_url) == before
    assert len(store.thresholds.versions()) == 2
    assert store.thresholds.in_force(1)["shop"].id == chosen.id


def test_a_recalibration_goes_on_from_bounds_of_the_traffic(store: Store, traffic: Traffic) -> None:
    traffic.comes(60)
    assert scheduled(store) == "1 bounds"
    assert list(Recalibrator.of(store).recalibrations(threading.Event(), trigger=SCHEDULE)) == []
    assert store.thresholds.in_force(1)["shop"].name == "shop/1"


# --- the commands ---


def test_the_commands_on_thresholds_show_preview_and_roll_back_what_followed_the_traffic(
    store: Store, database_url: str, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(gasp_worker, ["thresholds", *arguments])
        assert done.exit_code == 0, done.output
        return done.output.splitlines()[-1]

    traffic.comes(100, mean=5.0)
    (version,) = follow(store)
    assert said("list").split()[:3] == ["*", str(version.id), "shop/1"]
    assert "traffic, " in said("list")
    assert "flags the lowest 15 % of 500 scores of 100 answers" in said("list")
    assert said("history").endswith("traffic by follow_traffic")
    assert json.loads(said("preview", str(version.id), "--json"))["newly_flagged"] == 75
    assert "is not in force any more; the default is" in said("rollback", "--app", "shop", "--by", "ada")


# --- the job ---


def test_an_app_that_fails_keeps_no_other_from_it(store: Store, database_url: str, traffic: Traffic) -> None:
    for app in ("a", "bad", "c"):
        traffic.comes(60, app=app)
    rows(database_url, "ALTER TABLE thresholds ADD CONSTRAINT not_bad CHECK (app <> 'bad')")
    with capture_logs() as logs, pytest.raises(WorkerError, match="1 of 3 apps failed"):
        scheduled(store)
    assert set(store.thresholds.in_force(1)) == {None, "a", "c"}
    assert [(entry["event"], entry["app"]) for entry in logs] == [
        ("bounds_followed_traffic", "a"),
        ("app_failed", "bad"),
        ("bounds_followed_traffic", "c"),
    ]


def test_a_stop_is_heard_between_two_apps(store: Store, traffic: Traffic) -> None:
    for app in ("a", "b"):
        traffic.comes(60, app=app)
    stop = threading.Event()
    found = TrafficFollower.of(store).follow(stop)
    assert next(found).name == "a/1"
    stop.set()
    with pytest.raises(Stopped):
        next(found)


def test_bounds_are_of_scores_as_all_apps_taught_and_follow_when_that_changes(
    store: Store, database_url: str, traffic: Traffic
) -> None:
    traffic.comes(100, mean=FLAG_BELOW + 5, terms=True)
    (plain,) = follow(store)
    assert plain.correction is None
    assert follow(store) == []
    learned = Correction((Term("coverage", 0.0, 1.0, 4.0),))
    taught = store.thresholds.add(Proposal(None, 1, 0.1, 0.5, "calibrated", "labels", correction=learned))
    store.thresholds.activate(taught.id, "recalibration")
    (corrected,) = follow(store)
    assert (corrected.name, corrected.learned_from, corrected.correction) == ("shop/2", "traffic", learned)
    assert follow(store) == []
    traffic.comes(400, mean=FLAG_BELOW + 5, batch="then", terms=True)
    assert flagged_share(database_url, "shop", "then") == pytest.approx(0.15, abs=0.04)
    store.thresholds.roll_back(None, 1, "ada")
    (back,) = follow(store)
    assert (back.name, back.correction) == ("shop/3", None)
    assert back.flag_below == pytest.approx(plain.flag_below, abs=0.02)


def test_without_terms_of_the_traffic_bounds_stay_as_they_are(store: Store, traffic: Traffic) -> None:
    traffic.comes(100, mean=FLAG_BELOW + 5)
    (plain,) = follow(store)
    learned = Correction((Term("coverage", 0.0, 1.0, 4.0),))
    taught = store.thresholds.add(Proposal(None, 1, 0.1, 0.5, "calibrated", "labels", correction=learned))
    store.thresholds.activate(taught.id, "recalibration")
    assert follow(store) == []
    present = own(store)
    assert present is not None
    assert present.id == plain.id
