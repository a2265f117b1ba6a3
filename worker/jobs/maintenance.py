"""The jobs that keep the database in order. Another one is another line in JOBS."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import time

from worker.jobs.due_times import ScheduledJob, daily, every
from worker.jobs.recalibration import SCHEDULE, recalibrations
from worker.jobs.retention import Removal, apply_retention, describe_removal
from worker.review.usual_day import renew_usual_days
from worker.store.retention import Overdue
from worker.store.store import Store

KEEP_RUNS_DAYS = 30


def reap_leases(store: Store, _: threading.Event) -> str:
    """Give jobs whose worker died back to the queue."""
    reaped = store.reap_leases()
    return f"{reaped} leases" if reaped else ""


def ensure_weeks(store: Store, _: threading.Event) -> str:
    """Make the weekly tables of the next four weeks."""
    made = store.ensure_weeks()
    return f"{made} weekly tables" if made else ""


def retention(store: Store, stop: threading.Event) -> str:
    """Remove what is older than its app's period."""
    removal = apply_retention(store, stop)
    return "" if removal == Removal(Overdue(0, 0, 0, 0)) else describe_removal(removal)


def prune_runs(store: Store, _: threading.Event) -> str:
    """Forget old runs of these jobs."""
    pruned = store.prune_runs(KEEP_RUNS_DAYS)
    return f"{pruned} runs" if pruned else ""


def recalibrate(store: Store, stop: threading.Event) -> str:
    """Learn thresholds from the labels."""
    found = Counter(str(finding.result.outcome) for finding in recalibrations(store, stop, trigger=SCHEDULE))
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items()))


def settle_early_labels(store: Store, _: threading.Event) -> str:
    """Settle tasks whose labels came before them."""
    settled = store.settle_early_labels()
    return f"{settled} tasks" if settled else ""


JOBS = (
    ScheduledJob("reap_leases", every(10), reap_leases),
    ScheduledJob("settle_early_labels", every(60), settle_early_labels),
    ScheduledJob("ensure_weeks", daily(time(2, 10)), ensure_weeks),
    ScheduledJob("review_paces", every(3600), renew_usual_days),
    ScheduledJob("retention", daily(time(3, 10)), retention),
    ScheduledJob("prune_runs", daily(time(4, 10)), prune_runs),
    ScheduledJob("recalibrate", daily(time(5, 10)), recalibrate),
)
