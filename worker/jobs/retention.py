"""Retention: what is older than its app's period is removed, in steps that are safe to break off and begin again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from worker.errors import Stopped
from worker.jobs.each_app import each_app
from worker.store.errors import StoreBusy
from worker.store.offsets import Offsets
from worker.store.partitioning import WEEKLY_TABLES
from worker.store.retention import Overdue, Retention
from worker.store.retention_periods import RetentionPeriods
from worker.store.store import Store
from worker.store.weekly_partitions import WeeklyPartitions

INTERACTIONS_AT_ONCE = 1000
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Removal:
    """What a run removed. ``in_use`` names the weekly tables that somebody was using; they go with the next run."""

    removed: Overdue
    in_use: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remover:
    """Removes what is older than its app's period."""

    periods: RetentionPeriods
    retention: Retention
    partitions: WeeklyPartitions
    offsets: Offsets

    @classmethod
    def of(cls, store: Store) -> Remover:
        """With all that it takes of the store."""
        return cls(
            periods=store.retention_periods,
            retention=store.retention,
            partitions=store.weekly_partitions,
            offsets=store.offsets,
        )

    def remove(self, stop: threading.Event) -> Removal:
        """Remove what is overdue. Raises Stopped between two steps if a stop was asked for, and StoreError.

        Raises WorkerError, too, once everything else is done, if the rows of an app could not be removed.

        Weeks that nothing is kept of go first, because a table is dropped at once and a row is not. Each step is a
        transaction of its own, and no step needs that another was done.
        """
        before = self.periods.cutoff()
        dropped, in_use = (0, ()) if before is None else self._drop_partitions(before, stop)
        booked = 0 if before is None else self._delete_ledger(before, stop)
        lost = 0 if before is None else self.retention.delete_lost_offsets(before)
        # Last, because it is raised then if one of them failed.
        each = ((app, partial(self._delete_of, app, stop)) for app in self.retention.apps())
        removed = list(each_app("retention", each))
        interactions, traces = sum(one for one, _ in removed), sum(one for _, one in removed)
        return Removal(Overdue(dropped, interactions, booked, lost, traces), in_use)

    def _delete_of(self, app: str, stop: threading.Event) -> tuple[int, int]:
        """How many interactions and traces of an app went."""
        interactions = _in_batches(partial(self.retention.delete_interactions, app, INTERACTIONS_AT_ONCE), stop)
        return interactions, _in_batches(partial(self.retention.delete_traces, app, INTERACTIONS_AT_ONCE), stop)

    def _drop_partitions(self, before: datetime, stop: threading.Event) -> tuple[int, tuple[str, ...]]:
        """How many weekly partitions were dropped, and which tables could not be looked through."""
        _in_batches(partial(self.retention.delete_open_jobs, before, ROWS_AT_ONCE), stop)
        dropped, in_use = 0, []
        for table in WEEKLY_TABLES:
            try:
                dropped += self.partitions.drop(table, before)
            except StoreBusy:
                in_use.append(table)
        return dropped, tuple(in_use)

    def _delete_ledger(self, before: datetime, stop: threading.Event) -> int:
        return sum(
            _in_batches(partial(self.retention.delete_ledger, topic, partition, before, ROWS_AT_ONCE), stop)
            for topic, partition in self.offsets.partitions()
        )


def describe(found: Overdue) -> str:
    """In one line."""
    return (
        f"{found.weekly_tables} weekly tables, {found.interactions} interactions, {found.ledger_rows} ledger rows, "
        f"{found.lost_offsets} rows of lost offsets{f', {found.traces} traces' if found.traces else ''}"
    )


def describe_removal(removal: Removal) -> str:
    """In one line."""
    line = describe(removal.removed)
    return f"{line}; in use: {', '.join(removal.in_use)}" if removal.in_use else line


def _in_batches(delete: Callable[[], int], stop: threading.Event) -> int:
    """Delete until nothing is left; return how many rows went."""
    total = 0
    while not stop.is_set():
        deleted = delete()
        total += deleted
        if not deleted:
            return total
    raise Stopped("retention")
