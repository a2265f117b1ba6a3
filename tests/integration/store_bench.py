"""A database in which every write of the store has something to do, and what has been claimed in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tests.integration.label_examples import label
from tests.integration.store_examples import (
    IDENTITY,
    OTHER_IDENTITY,
    advance,
    age,
    attributed,
    claim,
    prepared,
    record,
    rows,
    scored,
    selected,
)
from tests.integration.trace_examples import collected, rag_steps
from worker.rules.pieces import ClosedBy, TracePolicy
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.settlement import Outcome, Settlement
from worker.rules.verdict import MANUAL, Threshold
from worker.store.attribution_jobs import AttributionJob
from worker.store.exports import ExportJob
from worker.store.opinion_jobs import OpinionJob
from worker.store.outbox import LeaseRequest, OutboxEvent
from worker.store.rescore_jobs import History, RescoreJob
from worker.store.retention_periods import Period
from worker.store.store import Store
from worker.store.threshold_versions import Proposal
from worker.store.traces import Closing, TraceJob

SCORES = [0.01, 0.05]
DROPS = [[0.3, -0.2], [0.4, 0.1]]
ANSWERS = 8
VERIFIER = "verifier-1"
TRACE_PARTITION = 4
# Longer than any run of the tests lasts: of all leases one is over, however slow the machine is.
HELD_S = 3_600
AT_ONCE = TracePolicy(grace=timedelta(0), time_out=timedelta(0))
DUE = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HISTORY = History(datetime(2000, 1, 1, tzinfo=UTC))
EVENTS = LeaseRequest("kafka", "relay-1", limit=2, lease_s=HELD_S, max_attempts=3, wait_s=0)
UNSEEDED = replace(IDENTITY, model="unseeded")
UNKNOWN = replace(IDENTITY, model="unknown")


@dataclass(frozen=True, slots=True)
class Claimed:
    """What stands in the database; the jobs are leased by worker-1."""

    scorer_id: int
    other_id: int
    unseeded_id: int
    threshold: Threshold
    stored_version: int
    job: AttributionJob
    rescoring: RescoreJob
    opinion: OpinionJob
    events: tuple[OutboxEvent, ...]
    trace: TraceJob
    export: ExportJob


def filled(store: Store, url: str) -> Claimed:
    """Fill a new database. One of the answers and one of the books is 40 days old, one label came before its task."""
    scorer_id, threshold = prepared(store, partitions=2)
    other_id, _ = prepared(store, OTHER_IDENTITY, partitions=0)
    store.labels.add([label("id-0", 0, "supported")], "file")
    batch = [
        selected(scored(number, f"id-{number}", SCORES, threshold), channels=("kafka",)) for number in range(ANSWERS)
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, ANSWERS)])
    _fill_thresholds(store, scorer_id)
    _fill_policies(store)
    version = store.thresholds.add(Proposal("help", scorer_id, 0.2, 0.4, MANUAL, "not in force"))
    claimed = Claimed(
        scorer_id,
        other_id,
        store.scorers.register(UNSEEDED),
        threshold,
        version.id,
        _attribution(store, scorer_id),
        _rescoring(store, other_id),
        _opinion(store, scorer_id),
        store.outbox.claim(EVENTS),
        _trace(store, scorer_id, url),
        _export(store, scorer_id, threshold),
    )
    _retire(store, url)
    _make_old(store, url)
    return claimed


def _fill_thresholds(store: Store, scorer_id: int) -> None:
    store.thresholds.set_by_hand(Proposal("shop", scorer_id, 0.2, 0.4, MANUAL, "in force"), "ada")


def _fill_policies(store: Store) -> None:
    store.policies.set(replace(DEFAULT_POLICY, app="shop"))
    for app in (None, "shop"):
        store.retention_periods.set(Period(app, 30))
    store.job_runs.claim("daily", DUE - timedelta(days=365), "worker-1")
    store.job_runs.claim("daily", DUE, "worker-1")


def _attribution(store: Store, scorer_id: int) -> AttributionJob:
    """One is done, one stays with us, and the lease of one is over."""
    done, job, _ = (store.attribution_jobs.claim("worker-1", scorer_id, lease_s, 3) for lease_s in (HELD_S, HELD_S, 0))
    assert done is not None
    assert job is not None
    assert store.attribution_jobs.finish(done, attributed(SCORES, DROPS))
    return job


def _rescoring(store: Store, scorer_id: int) -> RescoreJob:
    assert store.rescore_jobs.queue(scorer_id, HISTORY, None, limit=3).queued == 3
    (job,) = store.rescore_jobs.claim("worker-1", scorer_id, limit=1, lease_s=HELD_S, max_attempts=3)
    return job


def _opinion(store: Store, scorer_id: int) -> OpinionJob:
    """One of two sentences; the other one waits."""
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=10, limit=2) == 2
    job = store.opinion_jobs.claim("worker-1", VERIFIER, HELD_S, 3)
    assert job is not None
    return job


def _trace(store: Store, scorer_id: int, url: str) -> TraceJob:
    """One is closed, a long time ago, one stays with us, and two wait."""
    assert store.offsets.claim(claim(TRACE_PARTITION)) is not None
    batch = [collected(offset, f"t-{offset}", *rag_steps(offset), partition=TRACE_PARTITION) for offset in range(4)]
    whole = replace(advance(0, 4, TRACE_PARTITION), end_offset=4)
    store.settlements.settle(scorer_id, batch, [whole], AT_ONCE)
    old, ours = store.traces.claim("worker-1", topics=["other"], policy=AT_ONCE, lease_s=HELD_S, limit=2)
    store.traces.close(scorer_id, [closing(old)])
    rows(url, "UPDATE traces SET finished_at = finished_at - interval '40 days' WHERE state = 'done'")
    return ours


def closing(job: TraceJob) -> Closing:
    """The end of a trace that is none of ours."""
    found = Settlement(record(0, TRACE_PARTITION), Outcome.SKIPPED, "not_rag")
    return Closing(job, ClosedBy.COMPLETE, "shop", ((found, 0),))


def _export(store: Store, scorer_id: int, threshold: Threshold) -> ExportJob:
    """One of two answers; the other one waits."""
    batch = [
        replace(scored(4 + number, f"told-{number}", SCORES, threshold, partition=TRACE_PARTITION), exports=("otlp",))
        for number in range(2)
    ]
    store.settlements.settle(scorer_id, batch, [advance(4, 6, TRACE_PARTITION)])
    (job,) = store.exports.claim("otlp", owner="worker-1", limit=1, lease_s=HELD_S, max_attempts=3)
    return job


def _retire(store: Store, url: str) -> None:
    """Make one of the waiting jobs that of a scorer that is not at work."""
    retired = store.scorers.register(replace(IDENTITY, model="retired"))
    last_but_one = "SELECT id FROM attribution_jobs WHERE state = 'waiting' ORDER BY id DESC OFFSET 1 LIMIT 1"
    rows(url, f"UPDATE attribution_jobs SET scorer_id = %(retired)s WHERE id = ({last_but_one})", retired=retired)


def _make_old(store: Store, url: str) -> None:
    age(url, f"id-{ANSWERS - 1}", 40)
    rows(url, "UPDATE ledger SET settled_at = now() - interval '40 days' WHERE record_offset = 0")
    assert store.offsets.claim(claim(3)) is not None
    assert store.offsets.claim(claim(3, generation=4, beginning=7)) is not None
    rows(url, "UPDATE offset_gaps SET noticed_at = now() - interval '40 days'")
