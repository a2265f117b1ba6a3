"""The books: one row per offset, whatever became of the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection, func, select
from sqlalchemy.sql.dml import ReturningInsert

from worker.rules.settlement import Outcome, Settlement
from worker.store.bulk import Values, arrays, insert_from_arrays, parts
from worker.store.repository import Repository, reads
from worker.store.tables import ledger

DUPLICATE = "duplicate"
"""The reason of a record whose content has its verdict already."""

_COLUMNS = (
    "topic",
    "partition",
    "incarnation",
    "record_offset",
    "outcome",
    "reason",
    "detail",
    "interaction_pk",
    "value_bytes",
    "broker_time",
)

Entry = tuple[Settlement, int, int | None, bool]
"""A settlement, its topic's incarnation, its interaction's primary key, and whether it turned out to be a duplicate."""


class Ledger(Repository):
    """What became of every offset."""

    @reads
    def counts(self, connection: Connection) -> dict[tuple[Outcome, str | None], int]:
        """How many offsets are in the books, by outcome and reason."""
        counted = select(ledger.c.outcome, ledger.c.reason, func.count()).group_by(ledger.c.outcome, ledger.c.reason)
        return {(Outcome(outcome), reason): count for outcome, reason, count in connection.execute(counted)}


def write_ledger(connection: Connection, entries: Sequence[Entry]) -> dict[tuple[Outcome, str | None], int]:
    """Enter each offset once; count what was entered. An offset that is in the books already stays as it is."""
    counts: Counter[tuple[Outcome, str | None]] = Counter()
    for part in parts([_values(*entry) for entry in entries]):
        rows = connection.execute(_insert_new(), arrays(_COLUMNS, part))
        counts.update((Outcome(row.outcome), row.reason) for row in rows)
    return dict(counts)


@cache
def _insert_new() -> ReturningInsert[tuple[str, str | None]]:
    rows = insert_from_arrays(ledger, _COLUMNS).on_conflict_do_nothing()
    return rows.returning(ledger.c.outcome, ledger.c.reason)


def _values(settlement: Settlement, incarnation: int, interaction_pk: int | None, duplicate: bool) -> Values:  # noqa: FBT001 - of an Entry
    """In the order of _COLUMNS."""
    record = settlement.record
    outcome, reason = (Outcome.SKIPPED, DUPLICATE) if duplicate else (settlement.outcome, settlement.reason)
    place = (record.topic, record.partition, incarnation, record.offset)
    return (*place, outcome, reason, settlement.detail, interaction_pk, record.size, record.broker_time)
