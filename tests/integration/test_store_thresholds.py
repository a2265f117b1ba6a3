"""Threshold versions: added, put in force, rolled back, previewed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from typer.testing import CliRunner

from tests.integration.store_examples import OTHER_IDENTITY, advance, answer_of, prepared, rows, scored
from worker.cli import app as gasp_worker
from worker.store.preview import Preview
from worker.store.store import Store
from worker.store.threshold_versions import Proposal, Version

ACTIVATIONS = """
    SELECT coalesce(t.app, '*') || '/' || t.version AS name, a.reason, a.activated_by
    FROM threshold_activations a JOIN thresholds t ON t.id = a.threshold_id ORDER BY a.id
"""
IN_FORCE = "SELECT coalesce(app, '*') || '/' || version AS name FROM thresholds WHERE is_active ORDER BY 1"


def proposal(scorer_id: int, app: str | None = "shop", flag_below: float = 0.2) -> Proposal:
    return Proposal(app, scorer_id, flag_below, flag_below + 0.1, "manual", "for tests")


def in_force(url: str) -> list[str]:
    return [row["name"] for row in rows(url, IN_FORCE)]


def entered(url: str) -> list[tuple[str, str, str]]:
    return [(row["name"], row["reason"], row["activated_by"]) for row in rows(url, ACTIVATIONS)]


def together(*calls: Callable[[], object]) -> None:
    """Call them all at the same moment, and raise what one of them raises."""
    barrier = threading.Barrier(len(calls))

    def start(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        assert len(list(pool.map(start, calls))) == len(calls)


# --- versions ---


def test_a_seeded_default_is_entered_as_activated_once(store: Store, database_url: str) -> None:
    prepared(store)
    prepared(store)
    assert entered(database_url) == [("*/1", "seeded", "worker")]


def test_versions_that_are_added_at_once_get_numbers_of_their_own(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    together(*[lambda: store.thresholds.add(proposal(scorer_id))] * 4)
    found = rows(database_url, "SELECT version, is_active, activated_at FROM thresholds WHERE app = 'shop' ORDER BY 1")
    assert [row["version"] for row in found] == [1, 2, 3, 4]
    assert {(row["is_active"], row["activated_at"]) for row in found} == {(False, None)}


def test_of_versions_that_are_activated_at_once_exactly_one_is_in_force(store: Store, database_url: str) -> None:
    scorer_id, default = prepared(store)
    added = [store.thresholds.add(proposal(scorer_id, flag_below=bound)) for bound in (0.2, 0.3, 0.4, 0.5)]

    def activate(version: Version) -> Callable[[], object]:
        return lambda: store.thresholds.activate(version.id, "test")

    together(*map(activate, added))
    last = entered(database_url)[-1][0]
    assert len(entered(database_url)) == 5
    assert in_force(database_url) == ["*/1", last]
    active = store.thresholds.in_force(scorer_id)
    assert active["shop"].name == last
    assert active[None] == default


def test_activating_what_is_in_force_changes_nothing_and_an_unknown_id_is_said(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    version = store.thresholds.set_by_hand(proposal(scorer_id), "test")
    assert store.thresholds.activate(version.id, "test") == version
    assert entered(database_url)[1:] == [("shop/1", "manual", "test")]
    assert store.thresholds.activate(version.id + 1, "test") is None


# --- rolling back ---


def test_each_rollback_undoes_one_activation_until_the_app_follows_the_default(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    first, second, third = (store.thresholds.set_by_hand(proposal(scorer_id), "a") for _ in range(3))
    store.thresholds.activate(first.id, "a")
    undone = [store.thresholds.roll_back("shop", scorer_id, "b") for _ in range(4)]
    assert [(done.left.id, done.back_to and done.back_to.id) for done in undone if done] == [
        (first.id, third.id),
        (third.id, second.id),
        (second.id, first.id),
        (first.id, None),
    ]
    assert in_force(database_url) == ["*/1"]
    assert entered(database_url)[-2:] == [("shop/1", "rollback", "b"), ("shop/1", "withdrawn", "b")]
    assert store.thresholds.roll_back("shop", scorer_id, "b") is None
    assert store.thresholds.roll_back(None, scorer_id, "b") is None
    store.thresholds.activate(second.id, "a")
    assert in_force(database_url) == ["*/1", "shop/2"]


def test_a_version_that_was_put_in_force_by_sql_is_rolled_back_to_the_last_one_entered(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = prepared(store)
    known = store.thresholds.set_by_hand(proposal(scorer_id), "a")
    other = store.thresholds.add(proposal(scorer_id))
    rows(database_url, "UPDATE thresholds SET is_active = false WHERE id = %(id)s", id=known.id)
    rows(database_url, "UPDATE thresholds SET is_active = true, activated_at = now() WHERE id = %(id)s", id=other.id)
    done = store.thresholds.roll_back("shop", scorer_id, "b")
    assert done is not None
    assert (done.left.id, done.back_to and done.back_to.id) == (other.id, known.id)


# --- previews ---


@pytest.fixture
def week(store: Store, database_url: str) -> int:
    """Answers of three apps under a default of 0.1, one of them superseded and one eight days old; the scorer."""
    scorer_id, default = prepared(store)
    batch = [
        scored(0, "a", [0.01, 0.12, 0.3, None], default),
        scored(1, "b", [0.05, 0.15], default),
        scored(2, "c", [0.12], default, app="help"),
        scored(3, "d", [0.12], default, app="own"),
        scored(4, "old", [0.12], default),
        scored(5, "e", [0.12, 0.12], default),
        scored(6, "e", [0.5], default, edition="Once more. "),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 7)])
    store.thresholds.set_by_hand(proposal(scorer_id, app="own"), "test")
    age(database_url, "old", days=8)
    other, threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    store.settlements.settle(other, [scored(7, "f", [0.12], threshold)], [advance(7, 8)])
    return scorer_id


def age(url: str, interaction_id: str, days: int) -> None:
    """Let the answer have been judged so many days ago."""
    own = {"id": interaction_id, "days": timedelta(days=days)}
    theirs = "SELECT id FROM interactions WHERE interaction_id = %(id)s"
    judged = f"SELECT id FROM verdicts WHERE interaction_pk IN ({theirs})"
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        connection.execute("SELECT ensure_weeks(now() - %(days)s, now())", own)
        connection.execute("SET session_replication_role = replica")
        for table, key in (("sentences", "verdict_id"), ("verdicts", "id")):
            connection.execute(f"UPDATE {table} SET scored_at = scored_at - %(days)s WHERE {key} IN ({judged})", own)


def test_a_preview_counts_what_a_bound_would_change_of_the_apps_last_week(store: Store, week: int) -> None:
    found = store.previews.flagging_below("shop", week, 0.14)
    assert (found.sentences, found.flagged, found.newly_flagged, found.no_longer_flagged) == (6, 2, 1, 0)
    (one,) = found.sample
    assert (one.app, one.interaction_id, one.sentence_index, one.score, one.flagged) == ("shop", "a", 1, 0.12, False)
    assert one.text == answer_of(2)[len(answer_of(1)) :]
    assert counts(store.previews.flagging_below("shop", week, 0.03)) == (6, 2, 0, 1)
    assert counts(store.previews.flagging_below("shop", week, 0.1)) == (6, 2, 0, 0)


def test_a_preview_of_a_default_leaves_out_the_apps_with_a_version_of_their_own(store: Store, week: int) -> None:
    assert counts(store.previews.flagging_below(None, week, 0.14)) == (7, 2, 2, 0)
    assert counts(store.previews.flagging_below("own", week, 0.14)) == (1, 0, 1, 0)
    assert counts(store.previews.flagging_below("nobody", week, 0.14)) == (0, 0, 0, 0)


def test_a_preview_shows_ten_sentences_at_most(store: Store) -> None:
    scorer_id, default = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "long", [0.2] * 12, default)], [advance(0, 1)])
    found = store.previews.flagging_below("shop", scorer_id, 0.3)
    assert (found.newly_flagged, len(found.sample)) == (12, 10)


def counts(found: Preview) -> tuple[int, int, int, int]:
    return found.sentences, found.flagged, found.newly_flagged, found.no_longer_flagged


# --- the commands ---


@pytest.fixture
def gasp(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run `gasp-worker thresholds …` on the database; gives the lines that it prints."""
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)

    def run(*arguments: str, fails: str | None = None) -> list[str]:
        done = CliRunner().invoke(gasp_worker, ["thresholds", *arguments])
        if fails is not None:
            assert done.exit_code != 0
            assert fails in f"{done.output} {done.exception}"
            return []
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output.splitlines()

    return run


def test_a_version_is_stored_previewed_activated_and_rolled_back_by_command(
    gasp: Callable[..., list[str]], week: int, database_url: str
) -> None:
    scorer = ("--scorer", str(week))
    bounds = ("--flag-below", "0.14", "--attribute-below", "0.3", "--note", "400 labels")
    gasp("set", *bounds, "--app", "shop", fails="there are several scorers")
    (said,) = gasp("set", *bounds, *scorer, "--app", "shop", "--inactive", "--json")
    stored = json.loads(said)
    assert (stored["name"], stored["is_active"], stored["note"]) == ("shop/1", False, "400 labels")
    shown = gasp("preview", str(stored["id"]))
    assert shown[0] == "last week: 6 sentences, 2 flagged; 1 more would be, 0 no longer"
    assert shown[1] == "  shop a [1] score 0.1200 would be flagged"
    assert "\\N" not in shown[2]
    assert shown == gasp("preview", "--app", "shop", "--flag-below", "0.14", *scorer)
    assert gasp("activate", str(stored["id"])) == [f"shop/1 (id {stored['id']}) is in force"]
    assert [line[:2] for line in gasp("list") if "shop/1" in line] == ["* "]
    assert gasp("rollback", "--app", "shop", *scorer) == [
        f"shop/1 (id {stored['id']}) is not in force any more; the default is"
    ]
    assert [json.loads(line)["reason"] for line in gasp("history", "--json")][-2:] == ["manual", "withdrawn"]
    assert entered(database_url)[-1] == ("shop/1", "withdrawn", "ada")
    gasp("rollback", "--app", "shop", *scorer, fails="shop has no version of its own in force")
    gasp("rollback", *scorer, fails="the default is in force with its first version")


def test_a_preview_says_that_an_app_is_unknown_or_has_no_sentence_of_last_week(
    gasp: Callable[..., list[str]], week: int, database_url: str
) -> None:
    bound = ("--flag-below", "0.14", "--scorer", str(week))
    gasp("preview", "--app", "shpo", *bound, fails="nothing is stored of the app shpo; the apps are: ")
    with psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        connection.execute("DELETE FROM sentences")
    counts, said = gasp("preview", "--app", "shop", *bound)
    assert counts.startswith("last week: 0 sentences, 0 flagged")
    assert said == "this scorer has scored no sentence of the app shop in the last seven days"


def test_bounds_that_make_no_sense_are_refused_before_anything_is_stored(
    gasp: Callable[..., list[str]], store: Store, database_url: str
) -> None:
    prepared(store)
    gasp("set", "--flag-below", "0.3", "--attribute-below", "0.2", "--note", "x", fails="below --flag-below")
    gasp("set", "--flag-below", "nan", "--note", "x", fails="a number is wanted")
    gasp("preview", fails="give a version's id")
    gasp("preview", "--flag-below", "nan", fails="a number is wanted")
    gasp("activate", "99", fails="no version with the id 99")
    assert in_force(database_url) == ["*/1"]


def test_what_a_batch_needs_is_read_and_no_more(store: Store) -> None:
    scorer_id, default = prepared(store)
    for app in ("a", "b", "c"):
        store.thresholds.set_by_hand(Proposal(app, scorer_id, 0.2, 0.5, "manual", "for tests"), "ada")
    assert store.thresholds.in_force(scorer_id, ["b", "unknown"]).keys() == {None, "b"}
    assert store.thresholds.in_force(scorer_id, []) == {None: default}
    assert store.thresholds.in_force(scorer_id).keys() == {None, "a", "b", "c"}
