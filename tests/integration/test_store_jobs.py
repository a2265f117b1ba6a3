from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gasp_core.grounding import Passage
from tests.integration.store_examples import OTHER_IDENTITY, advance, attributed, prepared, rows, scored
from worker.store.attribution_jobs import AttributionJob
from worker.store.errors import StoreRejected
from worker.store.leases import Backlog
from worker.store.store import Store

JOB = "SELECT state, attempts, lease_owner, last_error, finished_at IS NOT NULL AS finished FROM attribution_jobs"


def _enqueue(store: Store, lowest_scores: list[float]) -> int:
    """Store an answer of two sentences for each gap; return the scorer."""
    scorer_id, threshold = prepared(store)
    batch = [scored(n, f"id-{n}", [gap, 0.9], threshold) for n, gap in enumerate(lowest_scores)]
    store.settlements.settle(scorer_id, batch, [advance(0, len(batch))])
    return scorer_id


def _claim(store: Store, scorer_id: int, owner: str = "worker-1", lease_s: float = 60) -> AttributionJob:
    job = store.attribution_jobs.claim(owner, scorer_id, lease_s, max_attempts=3)
    assert job is not None
    return job


def test_the_lowest_score_is_claimed_first_with_the_exchange_as_it_was_scored(store: Store, database_url: str) -> None:
    scorer_id = _enqueue(store, [0.2, -0.1, 0.05])
    claimed = [_claim(store, scorer_id) for _ in range(3)]
    order = rows(
        database_url,
        "SELECT v.id, lowest_score, question, answer FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk"
        " ORDER BY lowest_score",
    )
    assert [job.verdict_id for job in claimed] == [row["id"] for row in order]
    first = claimed[0]
    assert (first.exchange.question, first.exchange.answer) == (order[0]["question"], order[0]["answer"])
    assert first.exchange.passages == (Passage("p0", "Passage 0 on trains."), Passage("p1", "Passage 1 on trains."))
    assert (first.owner, first.attempts) == ("worker-1", 1)
    assert first.threshold_id == store.thresholds.in_force(scorer_id)[None].id
    assert store.attribution_jobs.claim("worker-1", scorer_id, 60, 3) is None
    assert store.attribution_jobs.backlog() == Backlog(waiting=0, running=3, failed=0)


def test_a_worker_gets_jobs_of_its_own_scorer_only(store: Store) -> None:
    scorer_id = _enqueue(store, [0.2])
    assert store.attribution_jobs.claim("worker-1", store.scorers.register(OTHER_IDENTITY), 60, 3) is None
    assert store.attribution_jobs.claim("worker-1", scorer_id, 60, 3) is not None


def test_four_threads_never_claim_the_same_job(store: Store) -> None:
    scorer_id = _enqueue(store, [n / 1000 for n in range(60)])
    barrier = threading.Barrier(4, timeout=30)

    def drain(owner: str) -> list[int]:
        barrier.wait()
        return [job.id for job in iter(lambda: store.attribution_jobs.claim(owner, scorer_id, 60, 3), None)]

    with ThreadPoolExecutor(4) as threads:
        claimed = list(threads.map(drain, ["a", "b", "c", "d"]))
    ids = [job for part in claimed for job in part]
    assert len(ids) == len(set(ids)) == 60


def test_a_finished_job_leaves_its_drops_and_the_supporting_chunk_of_each_sentence(
    store: Store, database_url: str
) -> None:
    scorer_id = _enqueue(store, [0.01])
    job = _claim(store, scorer_id)
    found = attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])
    assert store.attribution_jobs.finish(job, found)
    drops = "SELECT sentence_index, chunk_index, passage_position, start_char, end_char, chunk_group, drop, jsd"
    assert [tuple(row.values()) for row in rows(database_url, f"{drops} FROM chunk_attributions ORDER BY 1, 2")] == [
        (0, 0, 0, 0, 10, 0, 0.01, 0.125),
        (0, 1, 1, 0, 10, 1, -0.2, 0.125),
        (1, 0, 0, 0, 10, 0, 0.3, 0.125),
        (1, 1, 1, 0, 10, 1, 0.7, 0.125),
    ]
    support = "SELECT supporting_chunk, supporting_passage, supporting_drop, score FROM sentences"
    shown = rows(database_url, f"{support} ORDER BY sentence_index")
    assert [tuple(row.values()) for row in shown] == [(None, None, 0.01, 0.01), (1, 1, 0.7, 0.9)]
    stored = "SELECT method, lowest_score, attributed_at IS NOT NULL AS attributed FROM verdicts"
    assert rows(database_url, stored)[0] == {"method": "leave_one_out", "lowest_score": 0.01, "attributed": True}
    assert rows(database_url, JOB) == [
        {"state": "done", "attempts": 1, "lease_owner": None, "last_error": None, "finished": True}
    ]
    assert store.attribution_jobs.backlog() == Backlog(done=1)


def test_a_finished_job_cannot_be_finished_again(store: Store, database_url: str) -> None:
    scorer_id = _enqueue(store, [0.01])
    job = _claim(store, scorer_id)
    found = attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])
    assert store.attribution_jobs.finish(job, found)
    assert not store.attribution_jobs.finish(job, found)
    assert not store.leases.retry(job, "late", 0)
    assert not store.leases.fail(job, "late")
    assert rows(database_url, "SELECT count(*) AS n FROM chunk_attributions")[0]["n"] == 4


def test_a_job_whose_lease_ran_out_goes_to_the_next_worker_and_the_first_one_writes_nothing(
    store: Store, database_url: str
) -> None:
    scorer_id = _enqueue(store, [0.01])
    lost = _claim(store, scorer_id, "worker-1", lease_s=-1)
    assert store.leases.reap() == 1
    assert store.leases.reap() == 0
    assert rows(database_url, JOB) == [
        {"state": "waiting", "attempts": 1, "lease_owner": None, "last_error": "lease expired", "finished": False}
    ]
    again = _claim(store, scorer_id, "worker-1")
    assert again.attempts == 2
    found = attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])
    assert not store.attribution_jobs.finish(lost, found)
    assert rows(database_url, "SELECT * FROM chunk_attributions") == []
    assert store.attribution_jobs.finish(again, found)


def test_a_running_lease_is_not_reaped(store: Store) -> None:
    scorer_id = _enqueue(store, [0.01])
    _claim(store, scorer_id)
    assert store.leases.reap() == 0
    assert store.attribution_jobs.backlog() == Backlog(running=1)


def test_a_job_whose_lease_ran_out_unnoticed_may_still_be_finished(store: Store) -> None:
    scorer_id = _enqueue(store, [0.01])
    job = _claim(store, scorer_id, lease_s=-1)
    assert store.attribution_jobs.finish(job, attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]]))


def test_a_retried_job_waits_for_its_time(store: Store, database_url: str) -> None:
    scorer_id = _enqueue(store, [0.01, 0.3])
    first = _claim(store, scorer_id)
    assert store.leases.retry(first, "OutOfMemoryError", run_after_s=600)
    second = _claim(store, scorer_id)
    assert second.id != first.id
    assert store.attribution_jobs.claim("worker-1", scorer_id, 60, 3) is None
    rows(database_url, "UPDATE attribution_jobs SET run_after = now() WHERE state = 'waiting'")
    again = _claim(store, scorer_id)
    assert (again.id, again.attempts) == (first.id, 2)


def test_a_failed_job_keeps_its_error_and_is_not_claimed_again(store: Store, database_url: str) -> None:
    scorer_id = _enqueue(store, [0.01])
    job = _claim(store, scorer_id)
    assert store.leases.fail(job, "no\0 memory " + "x" * 2000)
    row = rows(database_url, JOB)[0]
    assert (row["state"], row["finished"]) == ("failed", True)
    assert row["last_error"].startswith("no memory x")
    assert len(row["last_error"]) == 1000
    assert store.attribution_jobs.claim("worker-1", scorer_id, 60, 3) is None
    assert store.attribution_jobs.backlog() == Backlog(failed=1)


def test_a_job_that_ended_every_worker_that_took_it_fails_when_its_attempts_are_used_up(
    store: Store, database_url: str
) -> None:
    scorer_id = _enqueue(store, [0.01, 0.3])
    for _ in range(3):
        assert _claim(store, scorer_id, lease_s=-1).attempts <= 3
        store.leases.reap()
    assert _claim(store, scorer_id).attempts == 1
    states = rows(database_url, "SELECT state, attempts, last_error FROM attribution_jobs ORDER BY priority")
    assert [tuple(row.values()) for row in states] == [("failed", 3, "lease expired"), ("running", 1, None)]


def test_attributions_of_another_segmentation_are_refused_and_the_job_stays_ours(
    store: Store, database_url: str
) -> None:
    scorer_id = _enqueue(store, [0.01])
    job = _claim(store, scorer_id)
    with pytest.raises(StoreRejected) as raised:
        store.attribution_jobs.finish(job, attributed([0.01, 0.9, 0.9], [[0.3, 0.2], [0.3, 0.2], [0.3, 0.2]]))
    assert "attributed sentences are not the verdict's" in str(raised.value)
    assert rows(database_url, "SELECT * FROM chunk_attributions") == []
    assert store.attribution_jobs.backlog() == Backlog(running=1)


def test_the_open_backlog_leaves_out_what_is_done(store: Store) -> None:
    scorer_id = _enqueue(store, [0.01, 0.02, 0.03])
    assert store.attribution_jobs.finish(_claim(store, scorer_id), attributed([0.01, 0.9], [[0.3, 0.2], [0.3, 0.2]]))
    assert store.leases.fail(_claim(store, scorer_id), "no use")
    assert store.attribution_jobs.backlog() == Backlog(waiting=1, failed=1, done=1)
    assert store.attribution_jobs.open_backlog() == Backlog(waiting=1, failed=1)


@pytest.fixture
def claimed(store: Store) -> AttributionJob:
    return _claim(store, _enqueue(store, [0.01]))


def test_a_lease_belongs_to_its_owner(store: Store, claimed: AttributionJob) -> None:
    assert not store.leases.fail(replace(claimed, owner="worker-2"), "not mine")
    assert not store.leases.fail(replace(claimed, attempts=2), "not mine")
    assert store.leases.fail(claimed, "mine")
