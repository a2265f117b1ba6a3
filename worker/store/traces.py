"""Traces that wait for the rest of their steps: which are due, what is known of each, and how they are closed.

A trace is a job of its own (see ``worker.store.leases``). It is closed in the transaction that stores its exchanges,
and only as long as nothing has come meanwhile: its ``version`` is that of what the exchanges were made of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    any_,
    case,
    delete,
    func,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import CollectionAggregate

from schemas.traces.piece import TraceKey
from worker.rules.pieces import ClosedBy, StoredPiece, TracePolicy
from worker.rules.settlement import Outcome, Settlement
from worker.store import leases
from worker.store.answers import time_for, write_answers
from worker.store.interactions import origin_values
from worker.store.ledger import DUPLICATE, Entry, first_of
from worker.store.repository import Repository, reads, writes
from worker.store.revisions import keyed
from worker.store.tables import interactions, partition_offsets, trace_pieces, traces
from worker.store.trace_names import lock_traces
from worker.store.trace_pieces import stored_piece

# Whatever else waits to be read: by then nobody knows what a partition's times mean.
_LONGEST_WAIT = timedelta(days=1)

_traces = traces.c
_offsets = partition_offsets.c
_IS_OPEN = _traces.state != literal_column("'done'")


@dataclass(frozen=True, slots=True)
class TraceJob(leases.LeasedJob):
    """A claimed trace, as it was then. ``closed_by`` is set if it is to be closed whether it is whole or not.

    ``waited`` says that it was found incomplete before, or has no root: then nothing more is waited for. One that
    ``was_told`` had exchanges at an earlier closing.
    """

    table: ClassVar[Table] = traces

    trace: TraceKey
    version: int
    waited: bool
    size: int
    app: str | None = None
    closed_by: ClosedBy | None = None
    was_told: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """What a trace came to: the settlements of its exchanges, or one that says why there are none.

    Each comes with the incarnation of the topic in which its record lies. ``has_around``: key and headers of all these
    records are known.
    """

    job: TraceJob
    closed_by: ClosedBy
    app: str
    settlements: tuple[tuple[Settlement, int], ...]
    has_around: bool = True


@dataclass(frozen=True, slots=True)
class Closed:
    """How many traces were closed by what, and how many results got each (outcome, reason)."""

    traces: dict[ClosedBy, int]
    results: dict[tuple[Outcome, str | None], int]


@dataclass(frozen=True, slots=True)
class OpenTraces:
    """How many traces wait or are worked on, how many of these for their root, and since when the first."""

    open: int = 0
    without_root: int = 0
    oldest_at: datetime | None = None


class Traces(Repository):
    """Traces in many messages."""

    @writes
    def claim(
        self,
        connection: Connection,
        owner: str,
        *,
        topics: Sequence[str],
        policy: TracePolicy,
        lease_s: float,
        limit: int,
    ) -> tuple[TraceJob, ...]:
        """Lease the traces that have been due for longest, with nothing of them ahead in a partition of the topics.

        A backlog is read unevenly: until every partition was read beyond the last piece of a trace, others of it may
        lie there. Those that are to be closed at once are not waited for.
        """
        candidates = select(_traces.id).where(or_(_traces.closed_by.is_not(None), _is_read(topics, policy)))
        claimed = leases.claim(
            connection,
            traces,
            candidates.order_by(_traces.run_after, _traces.id),
            owner=owner,
            lease_s=lease_s,
            # Whoever works on a trace decides when it is given up: that has to be told.
            max_attempts=_NEVER,
            limit=limit,
        )
        return tuple(_job(owner, row) for row in sorted(claimed, key=lambda row: (row.run_after, row.id)))

    @reads
    def pieces(self, connection: Connection, jobs: Sequence[TraceJob]) -> dict[int, tuple[StoredPiece, ...]]:
        """What is kept of the jobs' traces, each in the order in which the broker had it."""
        systems = {job.id: job.trace.system for job in jobs}
        theirs = trace_pieces.c.trace_pk == _any_of(list(systems))
        found: dict[int, list[StoredPiece]] = {pk: [] for pk in systems}
        for row in connection.execute(select(trace_pieces).where(theirs)):
            found[row.trace_pk].append(stored_piece(systems[row.trace_pk], row))
        return {pk: tuple(sorted(pieces, key=lambda piece: piece.order)) for pk, pieces in found.items()}

    @writes
    def postpone(self, connection: Connection, job: TraceJob, policy: TracePolicy) -> bool:
        """Wait for what is missing of a trace until its time-out. False if the lease was lost.

        What has come meanwhile has made it due itself.
        """
        is_same = _traces.version == job.version
        wait = update(traces).where(leases.is_ours(job))
        waiting = wait.values(
            state="waiting",
            attempts=0,
            lease_owner=None,
            leased_until=None,
            is_incomplete=case((is_same, True), else_=_traces.is_incomplete),
            run_after=case((is_same, _traces.last_at + policy.time_out), else_=_traces.run_after),
        )
        return connection.execute(waiting).rowcount == 1

    @writes
    def close(self, connection: Connection, scorer_id: int, closings: Sequence[Closing]) -> Closed:
        """Store what the traces came to and close them, all or nothing.

        One whose lease was lost is left out; one of which more has come meanwhile is given back.
        """
        ours = _still_same(connection, [closing.job for closing in closings])
        now = time_for(connection, [settlement for one in closings for settlement, _ in one.settlements])
        kept = [
            (closing, keyed(settlement, incarnation, now))
            for closing in sorted(closings, key=lambda one: one.job.id)
            if closing.job.id in ours
            for settlement, incarnation in closing.settlements
        ]
        answers = write_answers(connection, scorer_id, [item for _, item in kept])
        entries: dict[int, list[Entry]] = defaultdict(list)
        for position, (closing, item) in enumerate(kept):
            entry = Entry(item.settlement, 0, answers.pk(item), position in answers.duplicates)
            entries[closing.job.id].append(entry)
        closed = [closing for closing in closings if closing.job.id in ours]
        for closing in closed:
            _close(connection, closing, entries[closing.job.id])
            _tell_origins(connection, entries[closing.job.id])
        results = Counter((entry.outcome, entry.reason) for theirs in entries.values() for entry in theirs)
        return Closed(dict(Counter(closing.closed_by for closing in closed)), dict(results))

    @writes
    def close_surplus(self, connection: Connection, limit: int) -> int:
        """Let the open traces of an app be closed at once that are more than ``limit``; return how many.

        They are those for which nothing has come for longest: of these the least may be still to come.
        """
        waiting = and_(_IS_OPEN, _traces.closed_by.is_(None))
        counted = select(_traces.app, (func.count() - limit).label("surplus")).where(waiting)
        marked = 0
        for row in connection.execute(counted.group_by(_traces.app).having(func.count() > limit)).all():
            oldest = select(_traces.id).where(waiting, _traces.app.is_not_distinct_from(row.app))
            first = oldest.order_by(_traces.last_at).limit(row.surplus).with_for_update(skip_locked=True)
            pks = list(connection.scalars(first))
            due = {"closed_by": ClosedBy.TOO_MANY_OPEN.value, "run_after": func.least(_traces.run_after, func.now())}
            connection.execute(update(traces).where(_traces.id == _any_of(pks)).values(**due))
            marked += len(pks)
        return marked

    @writes
    def empty(self, connection: Connection, keep_days: int, limit: int) -> int:
        """Remove the pieces of traces that were closed more than ``keep_days`` ago; return of how many, at most."""
        old = _traces.finished_at < func.now() - timedelta(days=keep_days)
        kept = select(_traces.id).where(_traces.state == literal_column("'done'"), _traces.emptied_at.is_(None), old)
        first = kept.order_by(_traces.finished_at).limit(limit).with_for_update(skip_locked=True)
        return _empty(connection, list(connection.scalars(first)))

    @reads
    def counts(self, connection: Connection) -> dict[tuple[Outcome, str | None], int]:
        """How many traces are closed, by outcome and reason."""
        counted = select(_traces.outcome, _traces.reason, func.count()).where(_traces.state == "done")
        found = connection.execute(counted.group_by(_traces.outcome, _traces.reason))
        return {(Outcome(outcome), reason): count for outcome, reason, count in found}

    @reads
    def open(self, connection: Connection) -> OpenTraces:
        """What waits."""
        counted = select(
            func.count().label("open"),
            func.count().filter(_traces.has_root.is_(False)).label("without_root"),
            func.min(_traces.first_at).label("oldest_at"),
        )
        return OpenTraces(**connection.execute(counted.where(_IS_OPEN)).one()._asdict())


def closed_trace_apps(connection: Connection) -> list[str]:
    """Every app that has closed traces. Goes from app to app in the index, whatever their number of rows."""
    is_closed = _traces.state == literal_column("'done'")
    first = select(func.min(_traces.app).label("app")).where(is_closed).cte("apps", recursive=True)
    following = select(func.min(_traces.app)).where(is_closed, _traces.app > first.c.app).scalar_subquery()
    found = first.union_all(select(following).where(first.c.app.is_not(None)))
    return list(connection.scalars(select(found.c.app).where(found.c.app.is_not(None))))


# As high as the column goes.
_NEVER = 2**31 - 1


def _is_read(topics: Sequence[str], policy: TracePolicy) -> ColumnElement[bool]:
    """Whether no partition has something unread that may belong to the trace.

    A partition that was read to its end has nothing, and another one has nothing if it was read beyond the time at
    which the broker had the last piece, and the grace. In any case its end must have been asked for after that came.
    """
    here = and_(_offsets.topic.in_(topics), _offsets.vanished_at.is_(None))
    unread = _offsets.next_offset < _offsets.end_offset
    never: ColumnElement[datetime] = literal_column("'-infinity'::timestamptz")
    behind = select(func.min(func.coalesce(_offsets.last_broker_time, never))).where(here, unread).scalar_subquery()
    asked = select(func.min(func.coalesce(_offsets.end_asked_at, never))).where(here).scalar_subquery()
    last = func.least(func.coalesce(_traces.last_broker_time, _traces.last_at), func.now())
    is_read = and_(
        or_(behind.is_(None), behind >= last + policy.grace),
        or_(asked.is_(None), asked >= _traces.last_at),
    )
    return or_(is_read, _traces.last_at < func.now() - _LONGEST_WAIT)


def _job(owner: str, row: Row[Any]) -> TraceJob:
    return TraceJob(
        row.id,
        owner,
        row.attempts,
        trace=TraceKey(row.system, row.trace_id),
        version=row.version,
        waited=row.is_incomplete or not row.has_root,
        size=row.bytes,
        app=row.app,
        closed_by=None if row.closed_by is None else ClosedBy(row.closed_by),
        was_told=bool(row.interaction_pks),
    )


def _still_same(connection: Connection, jobs: Sequence[TraceJob]) -> set[int]:
    """Lock the jobs' traces, in the order in which all do; give back those of which more has come."""
    known = {job.id: job for job in jobs}
    locked = lock_traces(connection, sorted((job.trace.system, job.trace.id) for job in jobs))
    ours = [row for row in locked if row.state == "running" and _is_ours(known.get(row.id), row)]
    same = {row.id for row in ours if row.version == known[row.id].version}
    more = [row.id for row in ours if row.id not in same]
    if more:
        again = update(traces).where(_traces.id == _any_of(more))
        connection.execute(again.values(state="waiting", attempts=0, lease_owner=None, leased_until=None))
    return same


def _is_ours(job: TraceJob | None, row: Row[Any]) -> bool:
    return job is not None and (job.owner, job.attempts) == (row.lease_owner, row.attempts)


def _close(connection: Connection, closing: Closing, entries: Sequence[Entry]) -> None:
    """Enter what the trace came to. One that was scored before stays so if the same came of it again."""
    first = first_of(entries)
    pks = sorted({entry.interaction_pk for entry in entries if entry.interaction_pk is not None})
    is_refused = any(entry.outcome is Outcome.DEAD_LETTERED for entry in entries)
    if closing.job.was_told and not is_refused:
        _retract(connection, closing.job.id, pks)
    told = literal(pks, ARRAY(BigInteger))
    is_same = literal(first.reason == DUPLICATE)
    stays = and_(is_same, _traces.outcome.is_not(None), _traces.outcome != Outcome.DEAD_LETTERED.value)
    done = update(traces).where(_traces.id == closing.job.id)
    connection.execute(
        done.values(
            state="done",
            app=closing.app,
            closed_by=closing.closed_by.value,
            closings=_traces.closings + 1,
            outcome=case((stays, _traces.outcome), else_=first.outcome.value),
            reason=case((stays, _traces.reason), else_=first.reason),
            detail=case((stays, _traces.detail), else_=first.settlement.detail),
            # What was told before stands, if what came of it now is refused.
            interaction_pks=_traces.interaction_pks.concat(told) if is_refused else told,
            attempts=0,
            is_incomplete=closing.closed_by is not ClosedBy.COMPLETE,
            lease_owner=None,
            leased_until=None,
            last_error=None,
            finished_at=func.now(),
        )
    )
    if closing.closed_by is ClosedBy.TOO_LARGE:
        _empty(connection, [closing.job.id])


def _tell_origins(connection: Connection, entries: Sequence[Entry]) -> None:
    """Let what was made of a trace before, and is the same now, name all that it is made of now."""
    for entry in entries:
        origin = entry.settlement.origin
        if entry.reason == DUPLICATE and entry.interaction_pk is not None and origin is not None:
            sources, trace = origin_values(origin)
            same = interactions.c.id == entry.interaction_pk, interactions.c.trace.is_not(None)
            connection.execute(update(interactions).where(*same).values(sources=sources, trace=trace))


def _retract(connection: Connection, trace_pk: int, pks: Sequence[int]) -> None:
    """Let what was made of the trace before, and is no exchange of it any more, be no longer current.

    A piece that comes late may show that two exchanges were one, or of which app they are.
    """
    before = select(func.unnest(_traces.interaction_pks)).where(_traces.id == trace_pk)
    logged, still = interactions.c, interactions.alias("still").c
    same = and_(still.app == logged.app, still.interaction_id == logged.interaction_id)
    is_told = select(still.id).where(still.id == _any_of(pks), same).exists()
    gone = update(interactions).where(logged.id.in_(before), logged.is_current, ~is_told)
    connection.execute(gone.values(is_current=False))


def _empty(connection: Connection, pks: Sequence[int]) -> int:
    if pks:
        connection.execute(delete(trace_pieces).where(trace_pieces.c.trace_pk == _any_of(pks)))
        connection.execute(update(traces).where(_traces.id == _any_of(pks)).values(emptied_at=func.now()))
    return len(pks)


def _any_of(pks: Sequence[int]) -> CollectionAggregate[Any]:
    return any_(literal(list(pks), ARRAY(BigInteger)))
