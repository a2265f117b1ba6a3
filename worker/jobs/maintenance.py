"""The jobs that keep the database in order. Another one is another line here."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import time
from functools import partial

from worker.jobs.due_times import ScheduledJob, daily, every
from worker.jobs.recalibration import SCHEDULE, Recalibrator
from worker.jobs.retention import Removal, Remover, describe_removal
from worker.jobs.traffic_bounds import TrafficFollower
from worker.review.usual_day import renew_usual_days
from worker.store.replacement import Replacement
from worker.store.retention import Overdue
from worker.store.store import Store
from worker.store.threshold_versions import FOLLOWER
from worker.store.traces import Traces

KEEP_RUNS_DAYS = 30
KEEP_TRACES_DAYS = 8
EMPTIED_AT_ONCE = 500
CLOSED_AT_ONCE = 1000


def maintenance_jobs(store: Store, trace_keep_days: int = KEEP_TRACES_DAYS) -> tuple[ScheduledJob, ...]:
    """All of them, each on the parts of the store that it needs. Their names stand in ``job_runs``.

    The steps of a trace that was closed are kept for ``trace_keep_days``.
    """
    remover, recalibrator, follower = Remover.of(store), Recalibrator.of(store), TrafficFollower.of(store)
    days = partial(renew_usual_days, store.sampling, store.thresholds, store.interactions)
    return (
        ScheduledJob("reap_leases", every(10), lambda _: _counted(store.leases.reap(), "leases")),
        # The labels of a task that came before it.
        ScheduledJob("settle_early_labels", every(60), lambda _: _counted(store.labels.refresh_early(), "tasks")),
        ScheduledJob(
            "ensure_weeks", daily(time(2, 10)), lambda _: _counted(store.weekly_partitions.ensure(), "weekly tables")
        ),
        ScheduledJob("close_replaced", every(3600), partial(_close, store.replacement)),
        ScheduledJob("empty_traces", every(3600), partial(_empty, store.traces, trace_keep_days)),
        ScheduledJob(FOLLOWER, every(600), lambda stop: _counted(len(list(follower.follow(stop))), "bounds")),
        ScheduledJob("review_paces", every(3600), days),
        ScheduledJob("retention", daily(time(3, 10)), partial(_remove, remover)),
        ScheduledJob(
            "prune_runs", daily(time(4, 10)), lambda _: _counted(store.job_runs.prune(KEEP_RUNS_DAYS), "runs")
        ),
        ScheduledJob("recalibrate", daily(time(5, 10)), partial(_recalibrate, recalibrator)),
    )


def _close(replacement: Replacement, stop: threading.Event) -> str:
    """What scorers left open that are no longer at work, in portions."""
    closed = 0
    while not stop.is_set() and (found := replacement.close(CLOSED_AT_ONCE)):
        closed += found
    return _counted(closed, "jobs and tasks")


def _empty(traces: Traces, keep_days: int, stop: threading.Event) -> str:
    """What is kept of traces that were closed long ago, in portions."""
    emptied = 0
    while not stop.is_set() and (found := traces.empty(keep_days, EMPTIED_AT_ONCE)):
        emptied += found
    return _counted(emptied, "traces")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count else ""


def _remove(remover: Remover, stop: threading.Event) -> str:
    removal = remover.remove(stop)
    return "" if removal == Removal(Overdue(0, 0, 0, 0)) else describe_removal(removal)


def _recalibrate(recalibrator: Recalibrator, stop: threading.Event) -> str:
    found = Counter(str(finding.result.outcome) for finding in recalibrator.recalibrations(stop, trigger=SCHEDULE))
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items()))
