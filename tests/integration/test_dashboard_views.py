"""The views for dashboards, on rows so few that what they must say was worked out by hand."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas.skip_reason import SkipReason
from schemas.traces.step import Step
from tests.integration.store_examples import (
    IDENTITY,
    advance,
    attributed,
    dead_letter,
    prepared,
    record,
    rows,
    scored,
    skipped,
)
from tests.integration.trace_examples import collected
from worker.rules.settlement import Outcome, Settlement
from worker.store.store import Store

TEN = datetime(2025, 11, 30, 10, 0, tzinfo=UTC)
DAY = datetime(2025, 11, 30, tzinfo=UTC)


@pytest.fixture
def url(store: Store, database_url: str) -> str:
    """Three answers of ten o'clock, one of seven past, and one of another app; one has a second revision."""
    scorer_id, threshold = prepared(store)
    batch = [
        scored(0, "a", [0.01, 0.9, None], threshold),
        skipped(1, "b", threshold),
        scored(2, "c", [0.02], threshold),
        scored(3, "d", [0.5], threshold),
        scored(4, "other", [0.05], threshold, app="desk"),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 5)])
    store.settlements.settle(scorer_id, [scored(5, "c", [0.9], threshold, edition="new ")], [advance(5, 6)])
    move(database_url, "d", 7)
    return database_url


def move(url: str, interaction_id: str, minutes: int) -> None:
    moment = TEN + timedelta(minutes=minutes)
    rows(url, "UPDATE interactions SET occurred_at = %(t)s WHERE interaction_id = %(id)s", t=moment, id=interaction_id)


def rates(url: str, view: str) -> list[dict[str, Any]]:
    return rows(url, f"SELECT * FROM {view} WHERE app = 'shop' ORDER BY time")


def test_rates_count_the_current_answers_of_a_bucket(url: str) -> None:
    ten, later = rates(url, "v_rates_5m")
    assert (ten["time"], ten["scorer"], ten["generator_model"]) == (TEN, IDENTITY.label, "writer-1")
    assert (ten["interactions"], ten["scored"], ten["skipped"], ten["skipped_no_passages"]) == (3, 2, 1, 1)
    assert (ten["sentences"], ten["sentences_scored"], ten["sentences_flagged"]) == (5, 3, 1)
    assert ten["flagged_share"] == pytest.approx(1 / 3)
    # The lowest scores are 0.01 and 0.9; a tenth of the way, and half of it.
    assert (ten["lowest_score_p10"], ten["lowest_score_p50"]) == pytest.approx((0.099, 0.455))
    assert (later["time"], later["interactions"], later["flagged_share"]) == (TEN + timedelta(minutes=5), 1, 0)
    (day,) = rates(url, "v_rates_1d")
    assert (day["time"], day["interactions"], day["sentences_scored"], day["flagged_share"]) == (DAY, 4, 4, 0.25)
    assert (day["lowest_score_p10"], day["lowest_score_p50"]) == pytest.approx((0.01 + 0.2 * 0.49, 0.5))


def test_a_bucket_without_a_score_has_no_share(url: str) -> None:
    move(url, "b", -30)
    first = rates(url, "v_rates_5m")[0]
    assert (first["interactions"], first["flagged_share"], first["lowest_score_p10"]) == (1, None, None)


def test_a_late_message_is_counted_in_the_bucket_of_its_own_time(url: str, store: Store) -> None:
    threshold = store.thresholds.in_force(1)[None]
    store.settlements.settle(1, [scored(6, "late", [0.03, 0.04], threshold)], [advance(6, 7)])
    ten, _ = rates(url, "v_rates_5m")
    assert (ten["interactions"], ten["sentences_flagged"], ten["flagged_share"]) == (4, 3, 0.6)


def test_days_begin_at_midnight_in_utc_wherever_the_reader_is(url: str) -> None:
    move(url, "a", 13 * 60 + 59)
    move(url, "d", -10 * 60)
    elsewhere = f"{url}&options=-c%20timezone%3DAsia/Kolkata"
    (day,) = rates(elsewhere, "v_rates_1d")
    assert (day["time"], day["interactions"]) == (DAY, 4)


def test_the_use_of_passages_is_that_of_attributed_answers(url: str, store: Store) -> None:
    assert rows(url, "SELECT * FROM v_chunk_usage") == []
    job = store.attribution_jobs.claim("w", 1, 60, 3)
    assert job is not None
    assert store.attribution_jobs.finish(job, attributed([0.01, 0.9, None], [[0.4, -0.2], [0.1, 0.7], []]))
    first, second = rows(url, "SELECT * FROM v_chunk_usage ORDER BY passage_position")
    assert (first["time"], first["app"], first["passage_id"], first["answers"]) == (DAY, "shop", "p0", 1)
    # The first sentence rests on passage 0 and is contradicted by passage 1, on which the second rests.
    assert (first["sentences_supported"], first["sentences_contradicted"]) == (1, 0)
    assert (second["passage_id"], second["answers_supported"]) == ("p1", 1)
    assert (second["sentences_supported"], second["sentences_contradicted"]) == (1, 1)


def outcomes(url: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in rows(url, "SELECT app, outcome, reason FROM v_outcomes"))


def test_every_exchange_has_one_outcome_whatever_its_message_held(url: str, store: Store) -> None:
    before = outcomes(url)
    assert before == {("shop", "scored", None): 4, ("shop", "skipped", "no_passages"): 1, ("desk", "scored", None): 1}
    threshold = store.thresholds.in_force(1)[None]
    several = [scored(6, "e", [0.9], threshold), *(dead_letter(6, item=item) for item in (2, 3))]
    nothing = Settlement(record(7), Outcome.SKIPPED, SkipReason.TOMBSTONE)
    step = collected(8, "t", Step(id="root"))
    store.settlements.settle(1, [*several, nothing, step, dead_letter(9)], [advance(6, 10)])
    assert outcomes(url) - before == {("shop", "scored", None): 1, (None, "dead_lettered", "not_json"): 3}


CLOSED = """
UPDATE traces SET state = 'done', finished_at = now(), closed_by = 'complete', app = 'shop', outcome = {}
"""


def test_a_trace_has_an_outcome_when_it_is_closed_for_each_of_its_exchanges(url: str, store: Store) -> None:
    before = outcomes(url)
    store.settlements.settle(1, [collected(6, "t", Step(id="root"))], [advance(6, 7)])
    assert outcomes(url) == before
    rows(url, CLOSED.format("'skipped', reason = 'not_rag'"))
    assert outcomes(url) - before == {("shop", "skipped", "not_rag"): 1}
    made = "(SELECT array_agg(id) FROM interactions WHERE interaction_id IN ('a', 'other'))"
    rows(url, CLOSED.format(f"'scored', reason = NULL, interaction_pks = {made}"))
    assert outcomes(url) - before == {("shop", "scored", None): 1, ("desk", "scored", None): 1}


TASKS = """
INSERT INTO review_tasks (app, interaction_id, revision, scorer_id, threshold_id, reason, probability, lowest_score,
    reviewers, state, round, created_at, closed_at)
VALUES ('shop', 'a', 1, 1, 1, 'flagged', 0.5, 0.01, 1, 'open', 1, now() - interval '2 hours', NULL),
    ('shop', 'c', 2, 1, 1, 'sampled', 0.1, 0.9, 2, 'disputed', 2, now() - interval '1 hour', NULL),
    ('shop', 'd', 1, 1, 1, 'sampled', 0.1, 0.5, 1, 'labelled', 1, now(), now());
INSERT INTO review_sentences (task_pk, sentence_index, start_char, end_char, score, flagged, reason, probability)
VALUES (1, 0, 0, 9, 0.01, true, 'flagged', 0.5), (1, 1, 9, 18, 0.9, false, 'sampled', 0.1),
    (2, 0, 0, 9, 0.9, false, 'sampled', 0.1), (3, 0, 0, 9, 0.5, false, 'sampled', 0.1);
INSERT INTO review_labels (tool, external_id, action, label, app, interaction_id, revision, sentence_index, reviewer,
    labelled_at, source)
VALUES ('t', '1', 'label', 'supported', 'shop', 'a', NULL, 0, 'anna', now() - interval '50 minutes', 'sql'),
    ('t', '1', 'label', 'unsupported', 'shop', 'a', 1, 0, 'anna', now() - interval '40 minutes', 'sql'),
    ('t', '2', 'label', 'supported', 'shop', 'a', 1, 1, 'anna', now() - interval '30 minutes', 'sql'),
    ('t', '2', 'withdraw', NULL, 'shop', 'a', 1, 1, 'anna', now() - interval '20 minutes', 'sql'),
    ('t', '3', 'label', 'supported', 'shop', 'c', 1, 0, 'ben', now(), 'sql')
"""


def test_the_queue_has_the_tasks_that_wait_and_what_was_said_so_far(url: str) -> None:
    rows(url, TASKS)
    first, second = rows(url, "SELECT * FROM v_review_queue ORDER BY time")
    assert (first["interaction_id"], first["state"], first["reason"], first["round"]) == ("a", "open", "flagged", 1)
    assert first["age_s"] == pytest.approx(7200, abs=60)
    # A correction is no second label, and what was withdrawn is none; the label on revision 1 of c is not on 2.
    assert (first["sentences_asked"], first["sentences_labelled"]) == (2, 1)
    assert (second["state"], second["sentences_asked"], second["sentences_labelled"]) == ("disputed", 1, 0)


VERSIONS = """
INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from, activated_at)
VALUES ('shop', 1, 1, 0.2, 0.5, 'manual', now()), ('shop', 1, 2, 0.3, 0.5, 'calibrated', now());
DELETE FROM threshold_activations;
INSERT INTO threshold_activations (threshold_id, activated_at, activated_by, reason)
VALUES (1, '2025-11-01T00:00Z', 'worker', 'seeded'), (2, '2025-11-02T00:00Z', 'anna', 'manual'),
    (3, '2025-11-03T00:00Z', 'recalibration', 'calibrated'), (2, '2025-11-04T00:00Z', 'anna', 'rollback'),
    (2, '2025-11-05T00:00Z', 'anna', 'withdrawn')
"""


def test_a_threshold_holds_until_the_next_of_its_app_or_until_it_is_withdrawn(url: str) -> None:
    rows(url, VERSIONS)
    found = rows(url, "SELECT * FROM v_threshold_history ORDER BY time")
    assert [(row["threshold_version"], row["time"].day, row["until"] and row["until"].day) for row in found] == [
        ("*/1", 1, None),
        ("shop/1", 2, 3),
        ("shop/2", 3, 4),
        ("shop/1", 4, 5),
    ]
    assert [(row["reason"], row["activated_by"]) for row in found[2:]] == [
        ("calibrated", "recalibration"),
        ("rollback", "anna"),
    ]


RUNS = """
INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from)
VALUES ('shop', 1, 1, 0.3, 0.5, 'calibrated');
INSERT INTO calibration_runs (app, scorer_id, ran_at, trigger, outcome, reason, in_force_id, threshold_id, numbers)
VALUES
    ('shop', 1, '2025-11-01T00:00Z', 'schedule', 'unchanged', 'reached', 1, NULL, '{"recall": 0.5}'),
    ('shop', 1, '2025-11-02T00:00Z', 'schedule', 'new', 'reached', 1, 2,
        '{"n_labels": 300, "n_unsupported": 40, "effective_n": 99.5, "prior": 0.1, "recall": 0.8, "recall_low": 0.7,
          "recall_high": 0.9, "precision": 0.4, "precision_low": 0.3, "precision_high": null, "psi": 0.02}'),
    ('shop', 1, '2025-11-03T00:00Z', 'command', 'refused', 'too_few_labels', 2, NULL, '{"n_labels": 3}'),
    (NULL, 1, '2025-11-01T00:00Z', 'schedule', 'unchanged', 'reached', 1, NULL, '{"precision": 0.25}')
"""


def test_quality_is_what_the_newest_run_that_could_tell_has_found(url: str) -> None:
    rows(url, RUNS)
    refused, made, *_ = rows(url, "SELECT * FROM v_calibration_runs ORDER BY time DESC")
    assert (refused["outcome"], refused["reason"], refused["in_force"]) == ("refused", "too_few_labels", "shop/1")
    assert (refused["n_labels"], refused["recall"], refused["threshold_version"]) == (3, None, None)
    assert (made["in_force"], made["threshold_version"], made["flag_below"]) == ("*/1", "shop/1", 0.3)
    assert (made["n_unsupported"], made["effective_n"], made["psi"], made["precision_high"]) == (40, 99.5, 0.02, None)
    shop, everyone = rows(url, "SELECT * FROM v_quality ORDER BY app")
    assert (shop["threshold_version"], shop["recall"], shop["recall_low"], shop["n_labels"]) == (
        "shop/1",
        0.8,
        0.7,
        300,
    )
    assert (everyone["app"], everyone["precision"], everyone["recall"]) == (None, 0.25, None)
