"""The queue of interactions that wait for another scorer's verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg

from gasp_core.grounding import Passage
from tests.integration.store_examples import (
    IDENTITY,
    OCCURRED_AT,
    OTHER_IDENTITY,
    advance,
    age,
    answer_of,
    grounding,
    prepared,
    rows,
    scored,
    scores_of,
    selected,
)
from tests.waiting import wait_until
from worker.rules.settlement import Settlement
from worker.rules.verdict import judge
from worker.store.leases import Backlog
from worker.store.rescore_jobs import History, Portion, RescoreJob
from worker.store.review_tasks import REPLACED, RETIRED
from worker.store.revisions import Judged
from worker.store.store import Store

ALL = History(OCCURRED_AT - timedelta(days=1))
OLD_GAPS, NEW_GAPS = [0.2, 0.9], [0.05, 0.7]
VERDICTS = """
    SELECT i.interaction_id, v.scorer_id, v.threshold_id, v.lowest_score, v.n_flagged
    FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk ORDER BY 2, 1"""
JOBS = (
    "SELECT state, attempts, lease_owner, last_error, finished_at IS NOT NULL AS finished FROM rescore_jobs ORDER BY id"
)


def _at(settlement: Settlement, hours: int) -> Settlement:
    """The same exchange, so many hours later."""
    return _logged_at(settlement, OCCURRED_AT + timedelta(hours=hours))


def _logged_at(settlement: Settlement, time: datetime | None) -> Settlement:
    assert settlement.decoded is not None
    logged = settlement.decoded.interaction.model_copy(update={"occurred_at": time})
    return replace(settlement, decoded=replace(settlement.decoded, interaction=logged))


def _stored(store: Store, count: int) -> int:
    """Interactions id-0, id-1 … an hour apart, judged by one scorer; gives the id of another one."""
    scorer_id, threshold = prepared(store)
    batch = [_at(scored(n, f"id-{n}", OLD_GAPS, threshold), hours=n) for n in range(count)]
    store.settlements.settle(scorer_id, batch, [advance(0, count)])
    return prepared(store, OTHER_IDENTITY, partitions=0)[0]


def _queue(store: Store, scorer_id: int, history: History = ALL, *, limit: int = 100) -> Portion:
    return store.rescore_jobs.queue(scorer_id, history, None, limit=limit)


def _claim(store: Store, scorer_id: int, owner: str = "worker-1", *, limit: int = 8, lease_s: float = 60) -> Any:
    return store.rescore_jobs.claim(owner, scorer_id, limit=limit, lease_s=lease_s, max_attempts=3)


def _judged(store: Store, scorer_id: int, jobs: Sequence[RescoreJob]) -> list[tuple[RescoreJob, Judged]]:
    threshold = store.thresholds.in_force(scorer_id)[None]
    found = grounding(NEW_GAPS)
    return [(job, Judged(found, judge(scores_of(found), threshold))) for job in jobs]


def _names(url: str, jobs: Sequence[RescoreJob]) -> list[str]:
    names = {row["id"]: row["interaction_id"] for row in rows(url, "SELECT id, interaction_id FROM interactions")}
    return [names[job.interaction_pk] for job in jobs]


def test_everything_of_the_time_and_app_that_lacks_the_verdict_is_queued_newest_first(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    other, other_threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    batch = [_at(scored(n, f"id-{n}", OLD_GAPS, threshold), hours=n) for n in range(6)]
    batch.append(_at(scored(6, "elsewhere", OLD_GAPS, threshold, app="bot"), hours=3))
    store.settlements.settle(scorer_id, batch, [advance(0, 7)])
    store.settlements.settle(other, [_at(scored(7, "id-3", OLD_GAPS, other_threshold), hours=3)], [advance(7, 8)])
    span = History(OCCURRED_AT + timedelta(hours=1), OCCURRED_AT + timedelta(hours=5), "shop")
    assert _queue(store, other, span) == Portion(queued=3, judged=1, queued_before=0, end=None)
    jobs = _claim(store, other)
    assert _names(database_url, jobs) == ["id-4", "id-2", "id-1"]
    assert (jobs[0].owner, jobs[0].attempts, jobs[0].app) == ("worker-1", 1, "shop")
    assert jobs[0].exchange.answer == answer_of(2)
    assert jobs[0].exchange.passages == (Passage("p0", "Passage 0 on trains."), Passage("p1", "Passage 1 on trains."))


def test_portions_meet_at_their_ends_even_where_interactions_have_the_same_time(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    batch = [_at(scored(n, f"id-{n}", OLD_GAPS, threshold), hours=n // 4) for n in range(10)]
    store.settlements.settle(scorer_id, batch, [advance(0, 10)])
    other, _ = prepared(store, OTHER_IDENTITY, partitions=0)
    portions = [store.rescore_jobs.queue(other, ALL, None, limit=3)]
    while portions[-1].end is not None:
        portions.append(store.rescore_jobs.queue(other, ALL, portions[-1].end, limit=3))
    assert [portion.queued for portion in portions] == [3, 3, 3, 1]
    found = rows(
        database_url,
        "SELECT i.interaction_id FROM rescore_jobs j JOIN interactions i ON i.id = j.interaction_pk ORDER BY j.id",
    )
    assert [row["interaction_id"] for row in found] == [f"id-{n}" for n in reversed(range(10))]


def test_an_interaction_without_a_time_of_its_own_is_found_by_the_broker_s(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    settlement = _logged_at(scored(0, "a", OLD_GAPS, threshold), None)
    store.settlements.settle(scorer_id, [settlement], [advance(0, 1)])
    other, _ = prepared(store, OTHER_IDENTITY, partitions=0)
    logged_at = settlement.record.broker_time
    assert logged_at is not None
    assert _queue(store, other, History(logged_at + timedelta(seconds=1))).queued == 0
    assert _queue(store, other, History(logged_at)).queued == 1


def test_only_the_current_revision_is_queued(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", OLD_GAPS, threshold), scored(1, "a", OLD_GAPS, threshold, edition="new ")]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)])
    other, _ = prepared(store, OTHER_IDENTITY, partitions=0)
    assert _queue(store, other).queued == 1
    assert [job.exchange.answer for job in _claim(store, other)] == [answer_of(2, "new ")]


def test_counting_queues_nothing(store: Store) -> None:
    other = _stored(store, 3)
    assert store.rescore_jobs.queue(other, ALL, None, limit=100, only_count=True) == Portion(3, 0, 0, None)
    assert store.rescore_jobs.backlog() == Backlog()


def test_queueing_twice_queues_once_and_a_failed_job_again(store: Store, database_url: str) -> None:
    other = _stored(store, 3)
    assert _queue(store, other) == Portion(3, 0, 0, None)
    assert _queue(store, other) == Portion(0, 0, 3, None)
    failed, finished, _ = _claim(store, other, limit=3)
    assert store.leases.fail(failed, "RuntimeError")
    assert store.rescore_jobs.finish(other, _judged(store, other, [finished])) == 1
    assert store.rescore_jobs.queue(other, ALL, None, limit=100, only_count=True) == Portion(1, 1, 1, None)
    assert _queue(store, other) == Portion(1, 1, 1, None)
    assert rows(database_url, JOBS)[0] == {
        "state": "waiting",
        "attempts": 0,
        "lease_owner": None,
        "last_error": None,
        "finished": False,
    }
    assert store.rescore_jobs.backlog() == Backlog(waiting=1, running=1, done=1)


def test_two_commands_at_once_queue_each_interaction_once(store: Store) -> None:
    other = _stored(store, 60)
    queued = _together(*[lambda: _queue(store, other).queued] * 3)
    assert sum(queued) == 60
    assert store.rescore_jobs.backlog() == Backlog(waiting=60)


def test_cancelling_takes_waiting_jobs_of_this_scorer_back_and_leaves_running_ones(store: Store) -> None:
    other = _stored(store, 5)
    third = store.scorers.register(replace(OTHER_IDENTITY, dtype="float16"))
    _queue(store, other)
    _queue(store, third)
    _claim(store, other, limit=1)
    assert [store.rescore_jobs.cancel(other, limit=3) for _ in range(3)] == [3, 1, 0]
    assert store.rescore_jobs.backlog() == Backlog(waiting=5, running=1)
    assert _queue(store, other) == Portion(4, 0, 1, None)


def test_a_worker_gets_jobs_of_its_own_scorer_only(store: Store) -> None:
    other = _stored(store, 1)
    _queue(store, other)
    assert _claim(store, store.scorers.register(replace(OTHER_IDENTITY, dtype="float16"))) == ()
    assert len(_claim(store, other)) == 1


def test_four_threads_never_claim_the_same_job_and_no_batch_is_larger_than_asked(store: Store) -> None:
    other = _stored(store, 60)
    _queue(store, other)

    def drain() -> list[tuple[int, ...]]:
        return [tuple(job.id for job in jobs) for jobs in iter(lambda: _claim(store, other, limit=4), ())]

    batches = [batch for part in _together(*[drain] * 4) for batch in part]
    assert max(len(batch) for batch in batches) <= 4
    ids = [job for batch in batches for job in batch]
    assert len(ids) == len(set(ids)) == 60


def test_a_finished_batch_leaves_its_verdicts_beside_the_old_ones_with_a_job_for_attribution(
    store: Store, database_url: str
) -> None:
    other = _stored(store, 2)
    before = rows(database_url, VERDICTS)
    rows(database_url, "UPDATE attribution_jobs SET state = 'done', finished_at = now()")
    _queue(store, other)
    assert store.rescore_jobs.finish(other, _judged(store, other, _claim(store, other))) == 2
    threshold_id = store.thresholds.in_force(other)[None].id
    new = {"scorer_id": other, "threshold_id": threshold_id, "lowest_score": 0.05, "n_flagged": 1}
    assert rows(database_url, VERDICTS) == [*before, {"interaction_id": "id-0"} | new, {"interaction_id": "id-1"} | new]
    current = "SELECT DISTINCT revision, is_current FROM interactions"
    assert rows(database_url, current) == [{"revision": 1, "is_current": True}]
    seen = rows(database_url, "SELECT scorer_id, count(*) AS n FROM v_sentences GROUP BY 1 ORDER BY 1")
    assert seen == [{"scorer_id": other, "n": 4}]
    assert store.attribution_jobs.backlog() == Backlog(waiting=2, done=2)
    assert store.rescore_jobs.backlog() == Backlog(done=2)


def test_a_job_that_was_tried_before_comes_after_the_fresh_ones_and_alone(store: Store) -> None:
    other = _stored(store, 5)
    _queue(store, other)
    killed = _claim(store, other, limit=2, lease_s=-1)
    assert store.leases.reap() == 2
    batches = [tuple(job.id for job in jobs) for jobs in iter(lambda: _claim(store, other, limit=8), ())]
    first, second = (job.id for job in killed)
    assert batches == [(second + 1, second + 2, second + 3), (first,), (second,)]


def test_a_job_that_ended_every_worker_that_took_it_fails_when_its_attempts_are_used_up(
    store: Store, database_url: str
) -> None:
    other = _stored(store, 1)
    _queue(store, other)
    for attempt in range(3):
        assert [job.attempts for job in _claim(store, other, lease_s=-1)] == [attempt + 1]
        store.leases.reap()
    assert _claim(store, other) == ()
    assert rows(database_url, JOBS) == [
        {"state": "failed", "attempts": 3, "lease_owner": None, "last_error": "lease expired", "finished": True}
    ]


def test_a_released_job_is_as_if_it_had_never_been_claimed(store: Store, database_url: str) -> None:
    other = _stored(store, 1)
    _queue(store, other)
    (job,) = _claim(store, other)
    assert store.leases.release(job)
    assert rows(database_url, JOBS)[0]["attempts"] == 0
    assert store.rescore_jobs.finish(other, _judged(store, other, [job])) == 0
    assert [again.attempts for again in _claim(store, other)] == [1]


def test_a_worker_whose_lease_was_given_to_another_writes_nothing(store: Store, database_url: str) -> None:
    other = _stored(store, 2)
    _queue(store, other)
    lost = _claim(store, other, lease_s=-1)
    store.leases.reap()
    again = [_claim(store, other)[0] for _ in lost]
    assert store.rescore_jobs.finish(other, _judged(store, other, lost)) == 0
    assert [row["scorer_id"] for row in rows(database_url, VERDICTS) if row["scorer_id"] == other] == []
    assert store.rescore_jobs.finish(other, _judged(store, other, again)) == 2


def _judge_inline(store: Store, other: int, offset: int) -> None:
    """The interaction id-0 comes again, to a worker that runs the other scorer."""
    threshold = store.thresholds.in_force(other)[None]
    store.settlements.settle(other, [scored(offset, "id-0", OLD_GAPS, threshold)], [advance(offset, offset + 1)])


def test_a_verdict_that_was_stored_before_the_claim_closes_the_job(store: Store) -> None:
    other = _stored(store, 1)
    _queue(store, other)
    _judge_inline(store, other, 1)
    assert _claim(store, other) == ()
    assert store.rescore_jobs.backlog() == Backlog(done=1)


def test_a_verdict_that_was_stored_since_the_claim_stays_and_closes_the_job(store: Store, database_url: str) -> None:
    other = _stored(store, 2)
    _queue(store, other)
    jobs = _claim(store, other)
    _judge_inline(store, other, 2)
    assert store.rescore_jobs.finish(other, _judged(store, other, jobs)) == 1
    found = [(row["interaction_id"], row["lowest_score"]) for row in rows(database_url, VERDICTS)[2:]]
    assert found == [("id-0", 0.2), ("id-1", 0.05)]
    assert store.rescore_jobs.backlog() == Backlog(done=2)


def test_an_interaction_with_a_newer_revision_is_not_scored_any_more(store: Store, database_url: str) -> None:
    other = _stored(store, 1)
    _queue(store, other)
    first = rows(database_url, "SELECT id FROM scorers ORDER BY id")[0]["id"]
    threshold = store.thresholds.in_force(first)[None]
    store.settlements.settle(first, [scored(1, "id-0", OLD_GAPS, threshold, edition="new ")], [advance(1, 2)])
    assert _claim(store, other) == ()
    assert store.rescore_jobs.backlog() == Backlog(done=1)
    assert _queue(store, other).queued == 1


def test_inline_work_and_rescoring_that_store_the_same_verdict_at_once_leave_one(
    store: Store, database_url: str
) -> None:
    other = _stored(store, 1)
    for offset in range(1, 9):
        _queue(store, other)
        jobs = _claim(store, other)
        judged = _judged(store, other, jobs)
        _together(
            lambda offset=offset: _judge_inline(store, other, offset),  # type: ignore[misc]  # the default binds the offset
            lambda judged=judged: store.rescore_jobs.finish(other, judged),  # type: ignore[misc]  # as above
        )
        assert [row["scorer_id"] for row in rows(database_url, VERDICTS)].count(other) == 1
        assert store.rescore_jobs.backlog() == Backlog(done=1)
        rows(database_url, "DELETE FROM verdicts WHERE scorer_id = %(other)s", other=other)


def test_a_job_whose_interaction_was_deleted_meanwhile_leaves_nothing_and_takes_no_other_along(
    store: Store, database_url: str
) -> None:
    other = _stored(store, 2)
    _queue(store, other)
    jobs = _claim(store, other)
    rows(database_url, "DELETE FROM interactions WHERE interaction_id = 'id-1'")
    assert store.rescore_jobs.finish(other, _judged(store, other, jobs)) == 1
    assert {row["interaction_id"] for row in rows(database_url, VERDICTS)} == {"id-0"}
    assert store.rescore_jobs.backlog() == Backlog(done=1)


def test_a_deletion_that_is_under_way_is_waited_for(store: Store, database_url: str) -> None:
    other = _stored(store, 2)
    _queue(store, other)
    judged = _judged(store, other, _claim(store, other))
    address = database_url.replace("postgresql+psycopg://", "postgresql://")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as threads, psycopg.connect(address) as retention:
        # In the order in which retention does it.
        retention.execute("DELETE FROM rescore_jobs WHERE interaction_pk = %s", [judged[0][0].interaction_pk])
        retention.execute("DELETE FROM interactions WHERE id = %s", [judged[0][0].interaction_pk])
        finished = threads.submit(store.rescore_jobs.finish, other, judged)
        wait_until(lambda: rows(database_url, waiting), what="the finish to wait")
        retention.commit()
        assert finished.result(30) == 1
    assert {row["interaction_id"] for row in rows(database_url, VERDICTS)} == {"id-0"}


def test_the_scorers_are_known_by_label_and_time(store: Store) -> None:
    prepared(store)
    prepared(store, OTHER_IDENTITY, partitions=0)
    assert [scorer.label for scorer in store.scorers.known()] == [
        "tiny@01234567 float32 plain-1 gasp-1",
        "tiny@01234567 bfloat16 plain-1 gasp-1",
    ]
    assert all(scorer.registered_at.tzinfo for scorer in store.scorers.known())


def test_the_newest_verdict_of_a_model_says_by_what_it_judged(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    jsd = replace(IDENTITY, revision="another", method="gasp-1 jsd")
    assert store.scorers.newest_method("tiny") is None
    store.settlements.settle(scorer_id, [scored(0, "id-0", OLD_GAPS, threshold)], [advance(0, 1)])
    jsd_id, its_threshold = prepared(store, jsd, partitions=0)
    assert store.scorers.newest_method("tiny") == "gasp-1"
    store.settlements.settle(jsd_id, [scored(1, "id-1", OLD_GAPS, its_threshold)], [advance(1, 2)])
    assert store.scorers.newest_method("tiny") == "gasp-1 jsd"
    assert store.scorers.newest_method("other") is None


def _together(*works: Callable[[], Any]) -> list[Any]:
    """Run the works in threads that begin at the same moment."""
    barrier = threading.Barrier(len(works), timeout=30)

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


TASKS = "SELECT interaction_id, scorer_id, state, round, closed_because FROM review_tasks ORDER BY id"
EVENTS = "SELECT channel, round, state, last_error FROM outbox ORDER BY task_pk, channel, round"


def test_another_verdict_closes_what_the_scorer_before_left_open_and_tells_who_was_told(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    batch = [selected(scored(n, f"id-{n}", OLD_GAPS, threshold)) for n in range(2)]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)])
    told = "UPDATE outbox SET state = 'done', finished_at = now() WHERE channel = 'kafka'"
    rows(database_url, told)
    other, other_threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    # One by a message that comes again, the other by re-scoring.
    again = selected(scored(2, "id-0", NEW_GAPS, other_threshold), channels=("kafka",))
    store.settlements.settle(other, [again], [advance(2, 3)])
    _queue(store, other)
    assert store.rescore_jobs.finish(other, _judged(store, other, _claim(store, other))) == 1

    assert [tuple(row.values()) for row in rows(database_url, TASKS)] == [
        ("id-0", scorer_id, "withdrawn", 1, REPLACED),
        ("id-1", scorer_id, "withdrawn", 1, REPLACED),
        ("id-0", other, "open", 1, None),
    ]
    taken_back = [
        ("kafka", 1, "done", None),
        ("kafka", 2, "waiting", None),
        # Nobody was told of it there.
        ("webhook", 1, "failed", REPLACED),
    ]
    assert [tuple(row.values()) for row in rows(database_url, EVENTS)] == [
        *taken_back,
        *taken_back,
        ("kafka", 1, "waiting", None),
    ]
    jobs = "SELECT scorer_id, state, last_error, finished_at IS NULL AS is_open FROM attribution_jobs ORDER BY id"
    assert [tuple(row.values()) for row in rows(database_url, jobs)] == [
        (scorer_id, "failed", REPLACED, False),
        (scorer_id, "failed", REPLACED, False),
        (other, "waiting", None, True),
        (other, "waiting", None, True),
    ]
    assert store.attribution_jobs.claim("worker-1", scorer_id, 60, 3) is None


def test_what_a_scorer_left_open_that_is_no_longer_at_work_is_closed_and_nothing_while_none_is(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    batch = [selected(scored(n, f"id-{n}", OLD_GAPS, threshold)) for n in range(3)]
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    for name in ("id-0", "id-1", "id-2"):
        age(database_url, name, 8)
    other, other_threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    assert store.replacement.close(10) == 0
    store.settlements.settle(other, [selected(scored(3, "new", NEW_GAPS, other_threshold))], [advance(3, 4)])
    # Of each kind.
    assert [store.replacement.close(2) for _ in range(3)] == [4, 2, 0]
    assert [tuple(row.values()) for row in rows(database_url, TASKS)] == [
        *((f"id-{n}", scorer_id, "withdrawn", 1, RETIRED) for n in range(3)),
        ("new", other, "open", 1, None),
    ]
    jobs = rows(database_url, "SELECT state, last_error FROM attribution_jobs ORDER BY id")
    assert [tuple(row.values()) for row in jobs] == [*[("failed", RETIRED)] * 3, ("waiting", None)]
