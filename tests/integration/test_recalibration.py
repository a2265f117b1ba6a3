"""From labels in the database to a threshold version in force, or to a row that says why not."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import NullPool, create_engine
from structlog.testing import capture_logs
from typer.testing import CliRunner

from tests.integration.store_examples import (
    OCCURRED_AT,
    OTHER_IDENTITY,
    advance,
    grounding,
    prepared,
    rows,
    scored,
    scores_of,
)
from worker.cli import app as gasp_worker
from worker.errors import Stopped, WorkerError
from worker.jobs.maintenance import maintenance_jobs
from worker.jobs.recalibration import COMMAND, SCHEDULE, AppRecalibration, Recalibrator
from worker.rules.verdict import Threshold, judge
from worker.store.calibration_runs import OVERTAKEN, CalibrationRun
from worker.store.errors import StoreUnavailable
from worker.store.evidence import unanswered_sentences
from worker.store.rescore_jobs import History
from worker.store.revisions import Judged
from worker.store.store import Store
from worker.store.threshold_versions import Proposal

RUNS = "SELECT app, trigger, outcome, reason, in_force_id, threshold_id, numbers FROM calibration_runs ORDER BY id"
SENTENCES_PER_ANSWER = 4

TASKS = """
    INSERT INTO review_tasks
        (app, interaction_id, revision, interaction_pk, scorer_id, threshold_id, reason, probability, lowest_score,
         reviewers, state, closed_at)
    SELECT i.app, i.interaction_id, i.revision, i.id, v.scorer_id, v.threshold_id, 'sampled', 0.5, v.lowest_score, 1,
        'labelled', now()
    FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk
    WHERE v.scorer_id = %(scorer)s AND i.app = ANY(%(apps)s)
"""
ASKED = """
    INSERT INTO review_sentences
        (task_pk, sentence_index, start_char, end_char, score, flagged, reason, probability)
    SELECT t.id, s.sentence_index, s.start_char, s.end_char, s.score, s.flagged, 'sampled', 0.5
    FROM review_tasks t
    JOIN verdicts v ON v.interaction_pk = t.interaction_pk AND v.scorer_id = t.scorer_id
    JOIN sentences s ON s.verdict_id = v.id
"""
# Below 0.3 two of three sentences are unsupported, above it one in ten.
LABELS = """
    INSERT INTO review_labels (tool, external_id, action, label, task_id, sentence_index, reviewer, source)
    SELECT 'test', t.id || '-' || s.sentence_index, 'label',
        CASE WHEN (s.score < 0.3 AND mod(t.id + s.sentence_index, 3) > 0) OR mod(t.id * 7 + s.sentence_index, 10) = 0
            THEN 'unsupported' ELSE 'supported' END,
        t.task_id, s.sentence_index, 'ada', 'sql'
    FROM review_tasks t JOIN review_sentences s ON s.task_pk = t.id
"""


def gaps(n_answers: int, seed: int = 0) -> list[list[float]]:
    drawn = np.random.default_rng(seed).uniform(0, 1, (n_answers, SENTENCES_PER_ANSWER))
    return [list(map(float, row)) for row in drawn]


def fill(store: Store, url: str, *, answers: int, apps: Sequence[str] = ("shop",)) -> tuple[int, Threshold]:
    """So many judged answers of the app with a label on every sentence; the scorer and its default threshold."""
    scorer_id, threshold = prepared(store)
    batch = [
        scored(offset, f"id-{offset}", found, threshold, app=apps[offset % len(apps)])
        for offset, found in enumerate(gaps(answers))
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, answers)])
    rows(url, TASKS, scorer=scorer_id, apps=list(apps))
    rows(url, ASKED)
    rows(url, LABELS)
    return scorer_id, threshold


def run(store: Store, trigger: str = COMMAND, **options: Any) -> list[AppRecalibration]:
    return list(Recalibrator.of(store).recalibrations(threading.Event(), trigger=trigger, **options))


def scheduled(store: Store) -> str:
    """What the job of that name says that it did."""
    (job,) = (job for job in maintenance_jobs(store) if job.name == "recalibrate")
    return job.work(threading.Event())


def written(url: str) -> tuple[int, int, int]:
    """How many versions, activations and runs there are."""
    tables = ("thresholds", "calibration_runs", "threshold_activations")
    versions, runs, activations = (rows(url, f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables)
    return versions, activations, runs


def test_enough_labels_give_a_version_of_the_app_that_is_in_force_and_a_row_that_names_it(
    store: Store, database_url: str
) -> None:
    scorer_id, default = fill(store, database_url, answers=120)
    assert scheduled(store) == "2 new"
    of_app, of_default = rows(database_url, RUNS)
    assert [(row["app"], row["trigger"], row["outcome"]) for row in (of_app, of_default)] == [
        ("shop", "schedule", "new"),
        (None, "schedule", "new"),
    ]
    assert of_app["in_force_id"] == default.id
    assert of_app["numbers"]["n_labels"] == 480
    own = store.thresholds.in_force(scorer_id)["shop"]
    assert (own.id, own.name, own.learned_from) == (of_app["threshold_id"], "shop/1", "calibrated")
    assert own.flag_below > default.flag_below
    assert own.curve is not None
    assert own.curve.probability(0.1) > own.curve.probability(0.9)
    assert store.thresholds.in_force(scorer_id)[None].name == "*/2"
    entered = rows(database_url, "SELECT activated_by, reason FROM threshold_activations ORDER BY id")
    assert entered[1:] == [{"activated_by": "recalibration", "reason": "calibrated"}] * 2


def test_too_few_labels_are_a_row_with_the_reason_and_an_app_without_a_label_is_none(
    store: Store, database_url: str
) -> None:
    scorer_id, default = fill(store, database_url, answers=6)
    store.settlements.settle(scorer_id, [scored(6, "new", [0.2], default, app="unlabelled")], [advance(6, 7)])
    assert scheduled(store) == "2 refused"
    assert [(row["app"], row["outcome"], row["reason"], row["threshold_id"]) for row in rows(database_url, RUNS)] == [
        ("shop", "refused", "too_few_labels", None),
        (None, "refused", "too_few_labels", None),
    ]
    assert store.calibration_runs.counts() == {("refused", "too_few_labels"): 2}
    assert written(database_url)[0] == 1


def test_labels_of_flagged_sentences_alone_put_nothing_in_force(store: Store, database_url: str) -> None:
    scorer_id, default = fill(store, database_url, answers=400)
    rows(
        database_url,
        "DELETE FROM review_labels l USING review_tasks t, review_sentences s WHERE t.task_id = l.task_id"
        " AND s.task_pk = t.id AND s.sentence_index = l.sentence_index AND NOT s.flagged",
    )
    assert scheduled(store) == "2 refused"
    assert {(row["reason"], row["numbers"]["n_unflagged"]) for row in rows(database_url, RUNS)} == {
        ("too_few_unflagged", 0)
    }
    assert store.thresholds.in_force(scorer_id) == {None: default}


def test_without_any_label_nothing_is_written(store: Store, database_url: str) -> None:
    scorer_id, default = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.2], default)], [advance(0, 1)])
    assert scheduled(store) == ""
    assert written(database_url) == (1, 1, 0)


def test_a_dry_run_finds_the_same_and_writes_nothing(store: Store, database_url: str) -> None:
    fill(store, database_url, answers=120)
    before = written(database_url)
    (tried,) = run(store, app="shop", dry_run=True)
    assert written(database_url) == before
    (done,) = run(store, app="shop")
    assert done.result == tried.result
    assert (tried.added, done.added and done.added.name) == (None, "shop/1")
    assert written(database_url) == (2, 2, 1)


def test_a_connection_that_is_lost_between_the_version_and_its_activation_leaves_neither_them_nor_a_run(
    store: Store, database_url: str
) -> None:
    scorer_id, default = fill(store, database_url, answers=120)
    die = """
        CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END';
        CREATE TRIGGER die BEFORE INSERT ON threshold_activations FOR EACH ROW EXECUTE FUNCTION die()
    """
    rows(database_url, die)
    before = written(database_url)
    with pytest.raises(StoreUnavailable):
        run(store, app="shop")
    assert written(database_url) == before
    assert store.thresholds.in_force(scorer_id) == {None: default}
    rows(database_url, "DROP FUNCTION die CASCADE")
    assert [finding.added is not None for finding in run(store, app="shop")] == [True]


def test_a_version_that_came_into_force_meanwhile_is_not_replaced(store: Store, database_url: str) -> None:
    scorer_id, default = prepared(store)
    found = CalibrationRun("shop", scorer_id, COMMAND, "new", "reached", default.id, {"n_labels": 300})
    proposal = Proposal("shop", scorer_id, 0.2, 0.3, "calibrated", "300 labels")
    by_hand = store.thresholds.set_by_hand(Proposal("shop", scorer_id, 0.4, 0.4, "manual", "by hand"), "ada")
    assert store.calibration_runs.book(found, proposal) is None
    assert [(row["outcome"], row["reason"]) for row in rows(database_url, RUNS)] == [("refused", OVERTAKEN)]
    assert store.thresholds.in_force(scorer_id)["shop"].id == by_hand.id


def test_what_a_person_rolled_back_is_left_alone_by_the_schedule_and_not_by_the_command(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = fill(store, database_url, answers=120)
    run(store, app="shop")
    store.thresholds.roll_back("shop", scorer_id, "ada")
    held = run(store, SCHEDULE, app="shop")
    assert [(found.result.outcome, found.result.reason) for found in held] == [("refused", "set_by_hand")]
    assert set(store.thresholds.in_force(scorer_id)) == {None}
    rows(database_url, "UPDATE threshold_activations SET activated_at = activated_at - interval '8 days'")
    assert [found.result.outcome for found in run(store, SCHEDULE, app="shop", dry_run=True)] == ["new"]
    assert [found.added and found.added.name for found in run(store, app="shop")] == ["shop/2"]


def test_the_labels_of_another_scorers_tasks_count_with_this_scorers_own_scores(
    store: Store, database_url: str
) -> None:
    first, _ = fill(store, database_url, answers=3)
    other, threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    assert store.rescore_jobs.queue(other, History(OCCURRED_AT), None, limit=10).queued == 3
    judged = []
    for job in store.rescore_jobs.claim("w", other, limit=10, lease_s=60, max_attempts=3):
        # The first sentence cannot be scored, and the last was cut in two.
        found = grounding([None, 0.2, 0.3, 0.4])
        judged.append((job, Judged(found, judge(scores_of(found), threshold))))
    assert store.rescore_jobs.finish(other, judged) == 3
    rows(
        database_url,
        "UPDATE sentences SET end_char = end_char - 1 FROM verdicts v"
        " WHERE v.id = verdict_id AND v.scorer_id = %(other)s AND sentence_index = 3",
        other=other,
    )
    theirs = [label for _, label in store.evidence.labelled_sentences(other)]
    assert sorted(label.score for label in theirs) == [0.2] * 3 + [0.3] * 3
    assert {label.probability for label in theirs} == {0.5}
    ours = {label.cluster: label for _, label in store.evidence.labelled_sentences(first)}
    assert len(store.evidence.labelled_sentences(first)) == 12
    assert {label.cluster for label in theirs} == set(ours)
    assert store.scorers.at_work() == (first, other)


def test_a_label_outlives_its_answer_and_one_without_a_known_probability_is_left_out(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = fill(store, database_url, answers=2)
    rows(database_url, "DELETE FROM review_sentences WHERE sentence_index = 0")
    assert len(store.evidence.labelled_sentences(scorer_id)) == 6
    rows(database_url, "DELETE FROM ledger")
    rows(database_url, "DELETE FROM interactions WHERE interaction_id = 'id-0'")
    assert len({label.cluster for _, label in store.evidence.labelled_sentences(scorer_id)}) == 2
    assert len(store.evidence.labelled_sentences(scorer_id)) == 6


def test_the_population_is_the_last_four_weeks_of_the_apps_current_answers(store: Store) -> None:
    scorer_id, default = prepared(store)
    batch = [
        scored(0, "a", [0.5, 0.1, None], default),
        scored(1, "b", [0.9], default, edition="First. "),
        scored(2, "b", [0.7, 0.8], default),
        scored(3, "c", [0.3], default, app="help"),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 4)])
    found = store.evidence.population(["shop"], scorer_id)
    assert sorted(found.scores) == [0.1, 0.5, 0.7, 0.8]
    assert sorted(found.lowest) == [0.1, 0.7]
    assert found.sentences_a_day == 4
    assert len(store.evidence.population(["shop", "help"], scorer_id).scores) == 5
    assert len(store.evidence.population(["shop"], scorer_id, until=default.activated_at).scores) == 0


def test_of_many_answers_a_part_is_read_that_stands_for_all(store: Store) -> None:
    scorer_id, default = prepared(store)
    batch = [scored(offset, f"id-{offset}", found, default) for offset, found in enumerate(gaps(400))]
    store.settlements.settle(scorer_id, batch, [advance(0, 400)])
    part = store.evidence.population(["shop"], scorer_id, max_answers=200)
    assert 100 < len(part.lowest) < 300
    assert len(part.scores) == SENTENCES_PER_ANSWER * len(part.lowest)
    assert part.sentences_a_day == pytest.approx(400 * SENTENCES_PER_ANSWER, rel=0.3)


def test_a_stop_is_heard_between_two_apps(store: Store, database_url: str) -> None:
    fill(store, database_url, answers=4)
    stop = threading.Event()
    found = Recalibrator.of(store).recalibrations(stop, trigger=SCHEDULE)
    next(found)
    stop.set()
    with pytest.raises(Stopped):
        next(found)


def test_the_command_says_what_came_of_it_with_the_numbers_and_the_change(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, database_url, answers=120)
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)
    told = CliRunner().invoke(gasp_worker, ["recalibrate", "--app", "shop", "--json"])
    assert told.exit_code == 0, told.exception
    facts = json.loads(told.output.splitlines()[-1])
    assert (facts["app"], facts["outcome"], facts["in_force"], facts["added"]) == ("shop", "new", "*/1", "shop/1")
    assert facts["preview"]["sentences"] == 480
    assert facts["preview"]["newly_flagged"] > 0
    again = CliRunner().invoke(gasp_worker, ["recalibrate", "--dry-run"])
    assert again.output.startswith(f"shop, scorer 1: {run(store, app='shop', dry_run=True)[0].result.outcome} (")
    assert "n_labels               480" in again.output
    nobody = CliRunner().invoke(gasp_worker, ["recalibrate", "--app", "nobody"])
    assert nobody.output.startswith("no labels of nobody")


def test_an_app_that_cannot_be_recalibrated_keeps_no_other_from_it(store: Store, database_url: str) -> None:
    fill(store, database_url, answers=12, apps=("bad", "desk", "shop"))
    rows(database_url, "ALTER TABLE calibration_runs ADD CONSTRAINT not_bad CHECK (app <> 'bad')")
    with capture_logs() as logs, pytest.raises(WorkerError, match="1 of 4 apps failed"):
        scheduled(store)
    assert [row["app"] for row in rows(database_url, RUNS)] == ["desk", "shop", None]
    failed = [entry for entry in logs if entry["event"] == "app_failed"]
    assert failed == [
        {"event": "app_failed", "log_level": "error", "job": "recalibrate", "app": "bad", "error": "StoreRejected"}
    ]


def test_what_was_asked_without_a_result_is_known_beside_the_labels_and_both_by_the_time_of_their_task(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = fill(store, database_url, answers=40)
    rows(database_url, "UPDATE review_tasks SET created_at = now() - id * interval '1 day'")
    rows(database_url, "UPDATE review_tasks SET state = 'withdrawn' WHERE mod(id, 4) = 1")
    rows(
        database_url,
        "DELETE FROM review_labels l USING review_tasks t WHERE t.task_id = l.task_id AND mod(t.id, 4) = 1",
    )
    rows(
        database_url,
        "UPDATE review_labels l SET label = 'cant_tell' FROM review_tasks t"
        " WHERE t.task_id = l.task_id AND mod(t.id, 4) = 2 AND l.sentence_index = 0",
    )
    rows(database_url, "UPDATE review_tasks SET created_at = now() - interval '400 days' WHERE mod(id, 40) = 5")
    asked = rows(
        database_url,
        "SELECT t.id, s.sentence_index, s.score, t.created_at FROM review_tasks t"
        " JOIN review_sentences s ON s.task_pk = t.id WHERE t.created_at > now() - interval '1 year'",
    )
    silent = [row for row in asked if row["id"] % 4 == 1 or (row["id"] % 4 == 2 and row["sentence_index"] == 0)]
    found = store.evidence.unanswered_sentences(scorer_id)
    assert sorted((app, one.score, one.asked_at) for app, one in found) == sorted(
        ("shop", row["score"], row["created_at"].timestamp()) for row in silent
    )
    assert {one.probability for _, one in found} == {0.5}
    times = {label.asked_at for _, label in store.evidence.labelled_sentences(scorer_id)}
    assert times == {row["created_at"].timestamp() for row in asked if row["id"] % 4 != 1}
    (result, *_) = (finding.result for finding in run(store, app="shop", dry_run=True))
    assert result.numbers["n_asked"] == len(asked)
    assert result.numbers["response_rate"] == pytest.approx(1 - len(silent) / len(asked))


def test_unanswered_sentences_of_another_scorers_tasks_count_with_this_scorers_own_scores(
    store: Store, database_url: str
) -> None:
    first, _ = fill(store, database_url, answers=3)
    rows(database_url, "DELETE FROM review_labels")
    other, threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    assert store.rescore_jobs.queue(other, History(OCCURRED_AT), None, limit=10).queued == 3
    judged = []
    for job in store.rescore_jobs.claim("w", other, limit=10, lease_s=60, max_attempts=3):
        found = grounding([None, 0.2, 0.3, 0.4])
        judged.append((job, Judged(found, judge(scores_of(found), threshold))))
    assert store.rescore_jobs.finish(other, judged) == 3
    theirs = [one.score for _, one in store.evidence.unanswered_sentences(other)]
    assert sorted(theirs) == sorted([0.2, 0.3, 0.4] * 3)
    assert len(store.evidence.unanswered_sentences(first)) == 12


def test_of_very_many_unanswered_sentences_those_of_each_so_many_tasks_stand_for_all(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = fill(store, database_url, answers=40)
    rows(database_url, "DELETE FROM review_labels")
    with create_engine(database_url, poolclass=NullPool).connect() as connection:
        found = unanswered_sentences(connection, scorer_id, limit=40)
    assert len(found) == 40
    assert sum(1 / one.probability for _, one in found) == pytest.approx(160 / 0.5)
