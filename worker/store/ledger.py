"""The books: one row per offset, whatever became of the record, and one per result of a record that has several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, func, select, union_all
from sqlalchemy.sql.dml import ReturningInsert

from worker.rules.settlement import Outcome, Settlement, letter_of
from worker.store.bulk import Values, arrays, insert_from_arrays, insert_rows, parts
from worker.store.repository import Repository, reads
from worker.store.tables import ledger, ledger_items

DUPLICATE = "duplicate"
"""The reason of a record whose content has its verdict already."""

# What a record with several results is booked as: the first of these that is an outcome of one of them.
_FIRST = (Outcome.LABELLED, Outcome.SCORED, Outcome.COLLECTED, Outcome.DEAD_LETTERED, Outcome.SKIPPED)
_PLACE = ("topic", "partition", "incarnation", "record_offset")
_COLUMNS = (
    *_PLACE,
    "outcome",
    "reason",
    "detail",
    "interaction_pk",
    "value_bytes",
    "broker_time",
    "results",
)
_ITEM_COLUMNS = (*_PLACE, "item", "outcome", "reason", "detail", "interaction_pk")

Place = tuple[str, int, int, int]
"""Topic, partition, incarnation and offset."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A result, its topic's incarnation, its interaction's primary key, and whether it turned out to be a duplicate."""

    settlement: Settlement
    incarnation: int
    interaction_pk: int | None = None
    is_duplicate: bool = False

    @property
    def place(self) -> Place:
        """Where its record lies."""
        record = self.settlement.record
        return (record.topic, record.partition, self.incarnation, record.offset)

    @property
    def outcome(self) -> Outcome:
        """As it is booked."""
        return Outcome.SKIPPED if self.is_duplicate else self.settlement.outcome

    @property
    def reason(self) -> str | None:
        """As it is booked."""
        return DUPLICATE if self.is_duplicate else self.settlement.reason


class Ledger(Repository):
    """What became of every offset."""

    @reads
    def counts(self, connection: Connection) -> dict[tuple[Outcome, str | None], int]:
        """How many results are in the books, by outcome and reason."""
        single = select(ledger.c.outcome, ledger.c.reason).where(ledger.c.results.is_(None))
        booked = union_all(single, select(ledger_items.c.outcome, ledger_items.c.reason)).subquery().c
        counted = select(booked.outcome, booked.reason, func.count()).group_by(booked.outcome, booked.reason)
        return {(Outcome(outcome), reason): count for outcome, reason, count in connection.execute(counted)}

    @reads
    def records(self, connection: Connection) -> int:
        """How many offsets are in the books."""
        return connection.scalars(select(func.count()).select_from(ledger)).one()


def write_ledger(connection: Connection, entries: Sequence[Entry]) -> dict[tuple[Outcome, str | None], int]:
    """Enter each offset once; count the results that were entered. What is in the books already stays as it is."""
    records = {place: tuple(results) for place, results in groupby(entries, lambda entry: entry.place)}
    entered: list[Place] = []
    for part in parts([_values(results) for results in records.values()]):
        entered += [tuple(row) for row in connection.execute(_insert_new(), arrays(_COLUMNS, part))]
    new = [records[place] for place in entered]
    items = [_item_values(entry) for results in new if len(results) > 1 for entry in results]
    insert_rows(connection, ledger_items, _ITEM_COLUMNS, items)
    return dict(Counter((entry.outcome, entry.reason) for results in new for entry in results))


@cache
def _insert_new() -> ReturningInsert[Any]:
    rows = insert_from_arrays(ledger, _COLUMNS).on_conflict_do_nothing()
    return rows.returning(*(ledger.c[name] for name in _PLACE))


def first_of(results: Sequence[Entry]) -> Entry:
    """Of several results the one whose outcome is that of the whole."""
    return min(results, key=lambda entry: _FIRST.index(entry.outcome))


def _values(results: Sequence[Entry]) -> Values:
    """What is booked of a record, in the order of _COLUMNS."""
    first = first_of(results)
    record = first.settlement.record
    letter = letter_of([entry.settlement for entry in results]) if first.outcome is Outcome.DEAD_LETTERED else None
    detail = letter.detail if letter else first.settlement.detail
    booked = (first.outcome, first.reason, detail, first.interaction_pk)
    return (*first.place, *booked, record.size, record.broker_time, len(results) if len(results) > 1 else None)


def _item_values(entry: Entry) -> Values:
    """In the order of _ITEM_COLUMNS."""
    found = entry.settlement
    return (*entry.place, found.item, entry.outcome, entry.reason, found.detail, entry.interaction_pk)
