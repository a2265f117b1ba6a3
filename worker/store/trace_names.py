"""Which trace a key belongs to: mostly its own; one that lies within another key belongs to the trace of that.

What was collected under a key before that was known is joined to the trace then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Row,
    Select,
    Text,
    any_,
    bindparam,
    delete,
    literal,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, Insert

from worker.rules.pieces import ClosedBy, KnownTrace, TraceName, TracePiece, TracePolicy, merged, tops
from worker.rules.settlement import Outcome
from worker.store.bulk import arrays, insert_from_arrays, parts, unrolled
from worker.store.errors import StoreConflict
from worker.store.tables import trace_aliases, trace_pieces, traces

_KEY_COLUMNS = ("system", "trace_id")
_ALIAS_COLUMNS = (*_KEY_COLUMNS, "trace_pk")

# What all of them say together is due as if it had come now. Interactions of the parts are told anew as the whole's.
_ADD_OTHERS = text("""
UPDATE traces SET
    pieces = traces.pieces + others.pieces,
    steps = traces.steps + others.steps,
    bytes = traces.bytes + others.bytes,
    version = traces.version + others.version + 1,
    late_pieces = traces.late_pieces + others.late_pieces,
    closings = traces.closings + others.closings,
    interaction_pks = traces.interaction_pks || others.interaction_pks,
    app = coalesce(traces.app, others.app),
    has_root = traces.has_root OR others.has_root,
    is_incomplete = false,
    first_at = least(traces.first_at, others.first_at),
    last_at = now(),
    last_broker_time = greatest(traces.last_broker_time, others.last_broker_time),
    closed_by = CASE WHEN traces.state = 'done' AND traces.closed_by <> 'too_large' THEN NULL ELSE traces.closed_by END,
    state = CASE WHEN traces.state = 'done' AND traces.closed_by <> 'too_large' THEN 'waiting' ELSE traces.state END,
    finished_at = CASE WHEN traces.closed_by = 'too_large' THEN traces.finished_at END,
    run_after = now() + CASE WHEN traces.has_root OR others.has_root THEN :grace ELSE :time_out END
FROM (
    SELECT sum(pieces) AS pieces, sum(steps) AS steps, sum(bytes) AS bytes, sum(version) AS version,
        sum(late_pieces) AS late_pieces, sum(closings) AS closings, bool_or(has_root) AS has_root,
        min(first_at) AS first_at, max(last_broker_time) AS last_broker_time, min(app) AS app,
        (
            SELECT coalesce(array_agg(pk), '{}')
            FROM traces AS one, unnest(one.interaction_pks) AS pk WHERE one.id = ANY(:others)
        ) AS interaction_pks
    FROM traces WHERE id = ANY(:others)
) AS others
WHERE traces.id = :pk
""").bindparams(
    bindparam("others", type_=ARRAY(BigInteger)),
    bindparam("grace", type_=INTERVAL()),
    bindparam("time_out", type_=INTERVAL()),
)

_COUNT_OTHERS = text("""
UPDATE traces SET late_pieces = late_pieces + (SELECT sum(pieces) FROM traces WHERE id = ANY(:others)) WHERE id = :pk
""").bindparams(bindparam("others", type_=ARRAY(BigInteger)))

_traces = traces.c


@dataclass(frozen=True, slots=True)
class TakenTraces:
    """Traces that are locked to the end of the transaction: by name, and the name of each key."""

    known: Mapping[TraceName, KnownTrace]
    names: Mapping[TraceName, TraceName]

    def name_of(self, piece: TracePiece) -> TraceName:
        """The trace that a piece belongs to."""
        return self.names[piece.name]


def take_traces(connection: Connection, pieces: Sequence[TracePiece], policy: TracePolicy) -> TakenTraces:
    """Lock the traces of the pieces, make those that are new, and join those that are parts of others.

    All workers take them in the same order, so that two cannot wait for each other. Raises StoreConflict if another
    has joined one of them meanwhile; then the transaction is to be run again.
    """
    keys = sorted({name for piece in pieces for name in piece.names})
    known = _aliases(connection, keys)
    names = tops(pieces, known)
    rows = {known.get(key, key): names[key] for key in keys}
    wanted = sorted(set(names.values()))
    # Also those that are joined at once: so another worker that makes one of them at this moment is waited for.
    all_rows = sorted({*rows, *wanted})
    for part in parts(all_rows):
        connection.execute(_insert_new(), arrays(_KEY_COLUMNS, part))
    locked = _locked(connection, all_rows)
    if _aliases(connection, keys) != known or not locked.keys() >= set(all_rows):
        raise StoreConflict("another worker has joined the traces")
    others: dict[TraceName, list[KnownTrace]] = defaultdict(list)
    for row, name in rows.items():
        # What nothing is left of stays as it was told.
        if row != name and not locked[row].is_emptied:
            others[name].append(locked[row])
    taken = {name: merged(locked[name], others.get(name, ())) for name in wanted}
    for name, joined in others.items():
        _join(connection, taken[name], [one.pk for one in joined], policy)
    new = {key: name for key, name in names.items() if key != name and known.get(key) != name}
    _enter_aliases(connection, {key: taken[name] for key, name in new.items()})
    return TakenTraces(taken, names)


def _aliases(connection: Connection, keys: Sequence[TraceName]) -> dict[TraceName, TraceName]:
    """The names of the traces that keys belong to, of those that are not names themselves."""
    found = [row for part in parts(keys) for row in connection.execute(_find_aliases(), arrays(_KEY_COLUMNS, part))]
    return {(row.system, row.alias): (row.system, row.trace_id) for row in found}


@cache
def _find_aliases() -> Select[Any]:
    asked = unrolled(system=Text(), trace_id=Text())
    theirs = (
        select(trace_aliases.c.trace_id.label("alias"), _traces.system, _traces.trace_id)
        .join(traces, _traces.id == trace_aliases.c.trace_pk)
        .where(*(trace_aliases.c[name] == asked.c[name] for name in _KEY_COLUMNS))
        .offset(0)
        .lateral("theirs")
    )
    return select(*theirs.c).select_from(asked.join(theirs, true()))


def lock_traces(connection: Connection, names: Sequence[TraceName]) -> list[Row[Any]]:
    """Keep those of the traces that are there from everyone else, one after the other; ``names`` are sorted."""
    return [row for part in parts(names) for row in connection.execute(_lock(), arrays(_KEY_COLUMNS, part))]


def _locked(connection: Connection, names: Sequence[TraceName]) -> dict[TraceName, KnownTrace]:
    rows = lock_traces(connection, names)
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
    job = ("state", "lease_owner", "attempts", "version")
    names = ("id", *_KEY_COLUMNS, *job, "pieces", "steps", "bytes", "closed_by", "outcome", "emptied_at")
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


def _join(connection: Connection, trace: KnownTrace, pks: Sequence[int], policy: TracePolicy) -> None:
    """Give a trace all that others have which are parts of it, and remove these. They are late where it was emptied."""
    others = any_(literal(list(pks), ARRAY(BigInteger)))
    values = {"pk": trace.pk, "others": list(pks)}
    if trace.is_emptied:
        connection.execute(_COUNT_OTHERS, values)
    else:
        connection.execute(_ADD_OTHERS, values | {"grace": policy.grace, "time_out": policy.time_out})
        connection.execute(update(trace_pieces).where(trace_pieces.c.trace_pk == others).values(trace_pk=trace.pk))
    connection.execute(update(trace_aliases).where(trace_aliases.c.trace_pk == others).values(trace_pk=trace.pk))
    connection.execute(delete(traces).where(_traces.id == others))


def _enter_aliases(connection: Connection, new: Mapping[TraceName, KnownTrace]) -> None:
    """Keys of a trace that takes no more are not remembered."""
    rows = [(*key, trace.pk) for key, trace in sorted(new.items()) if trace.closed_by is not ClosedBy.TOO_LARGE]
    for part in parts(rows):
        connection.execute(_insert_aliases(), arrays(_ALIAS_COLUMNS, part))


@cache
def _insert_aliases() -> Insert:
    return insert_from_arrays(trace_aliases, _ALIAS_COLUMNS).on_conflict_do_nothing()
