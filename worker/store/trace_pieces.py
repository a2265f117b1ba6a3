"""What is kept of the pieces of traces, in the transaction that books the messages in which they came."""

from __future__ import annotations

from base64 import b64encode
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
    Select,
    Text,
    Update,
    any_,
    bindparam,
    case,
    func,
    literal,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, Insert
from sqlalchemy.types import TypeEngine

from worker.rules.pieces import ClosedBy, KnownTrace, PieceSkip, TraceChange, TracePiece, TracePolicy, change_of
from worker.rules.records import Record
from worker.rules.settlement import Outcome, Settlement
from worker.store.bulk import Values, arrays, insert_from_arrays, parts, unrolled
from worker.store.tables import trace_pieces, traces

# What a message says around its value, as far as it is kept for a dead letter.
_MAX_HEADER_BYTES = 8 * 1024
_KEY_COLUMNS = ("system", "trace_id")
_PIECE_COLUMNS = (
    "trace_pk",
    "topic",
    "partition",
    "incarnation",
    "record_offset",
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
    came: dict[tuple[str, str], list[_Came]] = defaultdict(list)
    for position, (settlement, incarnation) in enumerate(collected):
        for piece in settlement.pieces:
            name = (piece.trace.system, piece.trace.id)
            came[name].append(_Came(piece, position, settlement.record, incarnation))
    if not came:
        return [settlement for settlement, _ in collected]
    known = _locked(connection, sorted(came))
    changes = {name: change_of(known[name], [one.piece for one in came[name]]) for name in sorted(came)}
    _insert_pieces(connection, [(known[name].pk, came[name], change) for name, change in changes.items()])
    _change_traces(connection, [(known[name].pk, came[name], change) for name, change in changes.items()], policy)
    skipped: dict[int, list[PieceSkip | None]] = defaultdict(list)
    for name, change in changes.items():
        for number, one in enumerate(came[name]):
            skipped[one.position].append(change.skipped.get(number))
    return [_booked(settlement, skipped[position]) for position, (settlement, _) in enumerate(collected)]


def _booked(settlement: Settlement, skips: Sequence[PieceSkip | None]) -> Settlement:
    reasons = [reason for reason in skips if reason is not None]
    if not reasons or len(reasons) < len(skips):
        return settlement
    return Settlement(settlement.record, Outcome.SKIPPED, reasons[0], item=settlement.item)


def _locked(connection: Connection, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], KnownTrace]:
    """The traces as they stand, each of which is there from now on."""
    for part in parts(names):
        connection.execute(_insert_new(), arrays(_KEY_COLUMNS, part))
    rows = [row for part in parts(names) for row in connection.execute(_lock(), arrays(_KEY_COLUMNS, part))]
    digests = _digests(connection, [row.id for row in rows if row.pieces])
    return {
        (row.system, row.trace_id): KnownTrace(
            row.id,
            is_closed=row.state == "done",
            is_emptied=row.emptied_at is not None,
            is_refused=row.state == "done" and row.outcome == Outcome.DEAD_LETTERED,
            closed_by=None if row.closed_by is None else ClosedBy(row.closed_by),
            n_steps=row.steps,
            size=row.bytes,
            digests=frozenset(digests[row.id]),
        )
        for row in rows
    }


@cache
def _insert_new() -> Insert:
    return insert_from_arrays(traces, _KEY_COLUMNS).on_conflict_do_nothing()


@cache
def _lock() -> Select[Any]:
    """By a lateral subquery, one after the other: see ``worker.store.interactions``."""
    asked = unrolled(system=Text(), trace_id=Text())
    names = ("id", *_KEY_COLUMNS, "state", "pieces", "steps", "bytes", "closed_by", "outcome", "emptied_at")
    theirs = (
        select(*(_traces[name] for name in names))
        .where(*(_traces[name] == asked.c[name] for name in _KEY_COLUMNS))
        .offset(0)
        .with_for_update(of=traces)
        .lateral("theirs")
    )
    return select(*theirs.c).select_from(asked.join(theirs, true()))


def _digests(connection: Connection, pks: Sequence[int]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = defaultdict(list)
    if pks:
        theirs = trace_pieces.c.trace_pk == any_(literal(list(pks), ARRAY(BigInteger)))
        for row in connection.execute(select(trace_pieces.c.trace_pk, trace_pieces.c.digest).where(theirs)):
            found[row.trace_pk].append(row.digest)
    return found


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
    return (pk, *place, piece.adapter, piece.steps, piece.digest, record.broker_time, record.size, key, headers)


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
