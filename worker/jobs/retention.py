"""Retention: what is older than its app's period is removed, in steps that are safe to break off and begin again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from worker.errors import Stopped
from worker.store.errors import StoreBusy
from worker.store.retention import Overdue
from worker.store.store import Store
from worker.store.weeks import WEEKLY_TABLES

INTERACTIONS_AT_ONCE = 1000
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Removal:
    """What a run removed. ``in_use`` names the weekly tables that somebody was using; they go with the next run."""

    removed: Overdue
    in_use: tuple[str, ...] = ()


def apply_retention(store: Store, stop: threading.Event) -> Removal:
    """Remove what is overdue. Raises Stopped between two steps if a stop was asked for, and StoreError.

    Weeks that nothing is kept of go first, because a table is dropped at once and a row is not. Each step is a
    transaction of its own, and no step needs that another was done.
    """
    before = store.retention_cutoff()
    dropped, in_use = (0, ()) if before is None else _drop_weeks(store, before, stop)
    interactions = sum(
        _in_batches(partial(store.delete_interactions, app, INTERACTIONS_AT_ONCE), stop) for app in store.apps()
    )
    booked, gaps = (0, 0) if before is None else (_delete_ledger(store, before, stop), store.delete_gaps(before))
    return Removal(Overdue(dropped, interactions, booked, gaps), in_use)


def describe(found: Overdue) -> str:
    """In one line."""
    return (
        f"{found.weekly_tables} weekly tables, {found.interactions} interactions, {found.ledger_rows} ledger rows, "
        f"{found.offset_gaps} rows of lost offsets"
    )


def describe_removal(removal: Removal) -> str:
    """In one line."""
    line = describe(removal.removed)
    return f"{line}; in use: {', '.join(removal.in_use)}" if removal.in_use else line


def _drop_weeks(store: Store, before: datetime, stop: threading.Event) -> tuple[int, tuple[str, ...]]:
    """How many weekly tables were dropped, and which tables could not be looked through."""
    _in_batches(partial(store.delete_open_jobs, before, ROWS_AT_ONCE), stop)
    dropped, in_use = 0, []
    for table in WEEKLY_TABLES:
        try:
            dropped += store.drop_weeks(table, before)
        except StoreBusy:
            in_use.append(table)
    return dropped, tuple(in_use)


def _delete_ledger(store: Store, before: datetime, stop: threading.Event) -> int:
    return sum(
        _in_batches(partial(store.delete_ledger, found.topic, found.partition, before, ROWS_AT_ONCE), stop)
        for found in store.partition_statuses()
    )


def _in_batches(delete: Callable[[], int], stop: threading.Event) -> int:
    """Delete until nothing is left; return how many rows went."""
    total = 0
    while not stop.is_set():
        deleted = delete()
        total += deleted
        if not deleted:
            return total
    raise Stopped("retention")
