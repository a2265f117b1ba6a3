"""What is kept of the pieces of traces, in the transaction that books the messages in which they came."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    DateTime,
    Integer,
    Row,
    Text,
    Update,
    bindparam,
    case,
    func,
    null,
    or_,
    update,
)
from sqlalchemy.dialects.postgresql import INTERVAL, Insert
from sqlalchemy.types import TypeEngine

from schemas.traces.piece import TraceKey
from worker.rules.pieces import PieceSkip, StoredPiece, TraceChange, TraceName, TracePiece, TracePolicy, change_of
from worker.rules.records import Record
from worker.rules.settlement import Outcome, Settlement
from worker.store.bulk import Values, arrays, insert_from_arrays, parts, unrolled
from worker.store.tables import trace_pieces, traces
from worker.store.trace_names import take_traces

# What a message says around its value, as far as it is kept for a dead letter.
_MAX_HEADER_BYTES = 8 * 1024
_PIECE_COLUMNS = (
    "trace_pk",
    "topic",
    "partition",
    "incarnation",
    "record_offset",
    "trace_id",
    "within",
    "adapter",
    "steps",
    "digest",
    "broker_time",
    "value_bytes",
    "key",
    "headers",
)
_CHANGE_TYPES: dict[str, TypeEngine[Any]] = {
    "id": BigInteger(),
    "app": Text(),
    "broker_time": DateTime(timezone=True),
    "pieces": Integer(),
    "steps": Integer(),
    "bytes": BigInteger(),
    "has_root": Boolean(),
    "opens": Boolean(),
    "closes_as": Text(),
    "late": Integer(),
}

_traces = traces.c


@dataclass(frozen=True, slots=True)
class _Came:
    """A piece with the settlement that it came in, which is at this position, and the incarnation of its topic."""

    piece: TracePiece
    position: int
    record: Record
    incarnation: int


def collect(
    connection: Connection, collected: Sequence[tuple[Settlement, int]], policy: TracePolicy
) -> list[Settlement]:
    """Keep the pieces of settlements, each with its topic's incarnation; return these as they are to be booked.

    One of which no piece is kept is skipped, for the reason of the first. The traces stay locked to the end of the
    transaction. All take them in the same order, so that two workers cannot wait for each other.
    """
    pieces = [piece for settlement, _ in collected for piece in settlement.pieces]
    if not pieces:
        return [settlement for settlement, _ in collected]
    taken = take_traces(connection, pieces, policy)
    came: dict[TraceName, list[_Came]] = defaultdict(list)
    for position, (settlement, incarnation) in enumerate(collected):
        for piece in settlement.pieces:
            came[taken.name_of(piece)].append(_Came(piece, position, settlement.record, incarnation))
    changes = [
        (taken.known[name].pk, came[name], change_of(taken.known[name], [one.piece for one in came[name]]))
        for name in sorted(came)
    ]
    _insert_pieces(connection, changes)
    _change_traces(connection, changes, policy)
    skipped: dict[int, list[PieceSkip | None]] = defaultdict(list)
    for _, theirs, change in changes:
        for number, one in enumerate(theirs):
            skipped[one.position].append(change.skipped.get(number))
    return [_booked(settlement, skipped[position]) for position, (settlement, _) in enumerate(collected)]


def _booked(settlement: Settlement, skips: Sequence[PieceSkip | None]) -> Settlement:
    reasons = [reason for reason in skips if reason is not None]
    if not reasons or len(reasons) < len(skips):
        return settlement
    return Settlement(settlement.record, Outcome.SKIPPED, reasons[0], item=settlement.item)


def _insert_pieces(connection: Connection, changed: Sequence[tuple[int, Sequence[_Came], TraceChange]]) -> None:
    rows = [_piece_values(pk, came[number]) for pk, came, change in changed for number in change.added]
    for part in parts(rows):
        connection.execute(_pieces_from_arrays(), arrays(_PIECE_COLUMNS, part))


@cache
def _pieces_from_arrays() -> Insert:
    # What lies at the same place says the same, whatever release read it.
    return insert_from_arrays(trace_pieces, _PIECE_COLUMNS).on_conflict_do_nothing()


def _piece_values(pk: int, came: _Came) -> Values:
    """In the order of _PIECE_COLUMNS."""
    record, piece = came.record, came.piece
    around = record.memory_bytes - len(record.value or b"")
    key, headers = (record.key, _written(record)) if around <= _MAX_HEADER_BYTES else (None, None)
    place = (record.topic, record.partition, came.incarnation, record.offset)
    said = (piece.trace.id, piece.within, piece.adapter, piece.steps, piece.digest)
    return (pk, *place, *said, record.broker_time, record.size, key, headers)


def stored_piece(system: str, row: Row[Any]) -> StoredPiece:
    """A row of the table, of a trace of this system."""
    record = Record(
        row.topic,
        row.partition,
        row.record_offset,
        row.key,
        None,
        tuple((name, None if value is None else b64decode(value)) for name, value in row.headers or ()),
        None if row.broker_time is None else round(row.broker_time.timestamp() * 1000),
        left_out_bytes=row.value_bytes,
    )
    key = TraceKey(system, row.trace_id)
    return StoredPiece(
        record, row.incarnation, key, row.within, row.adapter, row.steps, has_around=row.headers is not None
    )


def _written(record: Record) -> list[list[str | None]]:
    return [[name, None if value is None else b64encode(value).decode()] for name, value in record.headers]


def _change_traces(
    connection: Connection, changed: Sequence[tuple[int, Sequence[_Came], TraceChange]], policy: TracePolicy
) -> None:
    rows = [_change_values(pk, came, change) for pk, came, change in changed]
    due = {"grace": policy.grace, "time_out": policy.time_out}
    for part in parts(rows):
        connection.execute(_changes_from_arrays(), arrays(tuple(_CHANGE_TYPES), part) | due)


def _change_values(pk: int, came: Sequence[_Came], change: TraceChange) -> Values:
    """In the order of _CHANGE_TYPES."""
    added = [came[number] for number in change.added]
    times = [one.record.broker_time for one in added if one.record.broker_time is not None]
    app = next((one.piece.app for one in added if one.piece.app), None)
    return (
        pk,
        app,
        max(times, default=None),
        len(added),
        sum(one.piece.n_steps for one in added),
        sum(one.piece.size for one in added),
        any(one.piece.has_root for one in added),
        change.opens,
        change.closes_as,
        change.late,
    )


@cache
def _changes_from_arrays() -> Update:
    """A trace that opens is due some time after now, unless it was to be closed at once and still is.

    One that is worked on stays so; whoever does that finds that the version is another.
    """
    new = unrolled(**_CHANGE_TYPES).c
    has_root = or_(_traces.has_root, new.has_root)
    was_done = _traces.state == "done"
    pending = case((was_done, null()), else_=_traces.closed_by)
    closes_as = func.coalesce(new.closes_as, pending)
    wait = case((has_root, bindparam("grace", type_=INTERVAL())), else_=bindparam("time_out", type_=INTERVAL()))
    due = case((closes_as.is_not(None), func.least(_traces.run_after, func.now())), else_=func.now() + wait)
    opened = {
        "state": case((was_done, "waiting"), else_=_traces.state),
        "attempts": case((was_done, 0), else_=_traces.attempts),
        "finished_at": null(),
        "closed_by": closes_as,
        "version": _traces.version + 1,
        "is_incomplete": False,
        "last_at": func.now(),
        "run_after": due,
    }
    return (
        update(traces)
        .where(_traces.id == new.id)
        .values(
            app=func.coalesce(_traces.app, new.app),
            last_broker_time=func.greatest(_traces.last_broker_time, new.broker_time),
            pieces=_traces.pieces + new.pieces,
            steps=_traces.steps + new.steps,
            bytes=_traces.bytes + new.bytes,
            has_root=has_root,
            late_pieces=_traces.late_pieces + new.late,
            **{name: case((new.opens, value), else_=_traces[name]) for name, value in opened.items()},
        )
    )
