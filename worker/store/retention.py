"""The removal of what is older than its period, in batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    and_,
    any_,
    delete,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from worker.store.interactions import stored_apps
from worker.store.partitioning import partitions_before
from worker.store.repository import Repository, reads, writes
from worker.store.retention_periods import app_cutoff, cutoff_of_all, is_old
from worker.store.review_tasks import withdraw_old, withdraw_removed
from worker.store.tables import (
    attribution_jobs,
    interactions,
    ledger,
    offset_gaps,
    partition_offsets,
    rescore_jobs,
    retention_periods,
    traces,
    verdicts,
)
from worker.store.traces import closed_trace_apps

_periods = retention_periods.c
_logged = interactions.c
_booked = ledger.c


@dataclass(frozen=True, slots=True)
class Overdue:
    """What is older than its period. A weekly table holds the passages, sentences or attributions of one week."""

    weekly_tables: int
    interactions: int
    ledger_rows: int
    lost_offsets: int
    traces: int = 0


class Retention(Repository):
    """What is older than its period: how much it is, and its removal."""

    @reads
    def overdue(self, connection: Connection) -> Overdue:
        """Count what the next run would remove."""
        before = cutoff_of_all(connection)
        old = sum(_count(connection, interactions, *is_old(app)) for app in stored_apps(connection))
        closed = sum(_count(connection, traces, *_is_closed_long_ago(app)) for app in closed_trace_apps(connection))
        if before is None:
            return Overdue(0, old, 0, 0, closed)
        return Overdue(
            partitions_before(connection, before),
            old,
            _count(connection, ledger, _booked.settled_at < before),
            _count(connection, offset_gaps, offset_gaps.c.noticed_at < before),
            closed,
        )

    @reads
    def apps(self, connection: Connection) -> list[str]:
        """Every app that has interactions or traces."""
        return sorted({*stored_apps(connection), *closed_trace_apps(connection)})

    @writes
    def delete_open_jobs(self, connection: Connection, before: datetime, limit: int) -> int:
        """Remove jobs of interactions stored before a time, so that none reads weeks that are being dropped.

        Review tasks are withdrawn for the same reason. Returns how many went, at most ``limit`` of each kind.
        """
        old = _logged.stored_at < before
        attribution = (
            select(attribution_jobs.c.id)
            .join(verdicts, verdicts.c.id == attribution_jobs.c.verdict_id)
            .join(interactions, _logged.id == verdicts.c.interaction_pk)
            .where(old, attribution_jobs.c.state != "done")
        )
        rescoring = select(rescore_jobs.c.id).join(interactions).where(old, rescore_jobs.c.state != "done")
        jobs = sum(
            connection.execute(delete(table).where(table.c.id.in_(doomed.limit(limit)))).rowcount
            for table, doomed in ((attribution_jobs, attribution), (rescore_jobs, rescoring))
        )
        return jobs + withdraw_old(connection, before, limit)

    @writes
    def delete_interactions(self, connection: Connection, app: str, limit: int) -> int:
        """Remove the app's oldest interactions that are older than its period, with all that belongs to them.

        Returns how many went, at most ``limit``. Their jobs go first, in the order in which a worker that ends a job
        takes the rows, so that the two cannot wait for each other. Their review tasks stay, withdrawn if they were
        open.
        """
        oldest = select(_logged.id).where(*is_old(app)).order_by(_logged.stored_at).limit(limit)
        doomed = any_(literal(list(connection.scalars(oldest)), ARRAY(BigInteger)))
        judged = select(verdicts.c.id).where(verdicts.c.interaction_pk == doomed)
        connection.execute(delete(rescore_jobs).where(rescore_jobs.c.interaction_pk == doomed))
        connection.execute(delete(attribution_jobs).where(attribution_jobs.c.verdict_id.in_(judged)))
        removed = connection.execute(delete(interactions).where(_logged.id == doomed)).rowcount
        # Afterwards, so that one is found that was written until we had the interaction's row.
        withdraw_removed(connection, app)
        return removed

    @writes
    def delete_traces(self, connection: Connection, app: str, limit: int) -> int:
        """Remove traces of the app that were closed before its period began, with what is kept of them.

        Returns how many went, at most ``limit``.
        """
        closed = select(traces.c.id).where(*_is_closed_long_ago(app)).order_by(traces.c.finished_at).limit(limit)
        doomed = list(connection.scalars(closed.with_for_update(skip_locked=True)))
        connection.execute(delete(traces).where(traces.c.id == any_(literal(doomed, ARRAY(BigInteger)))))
        return len(doomed)

    @writes
    def delete_ledger(self, connection: Connection, topic: str, partition: int, before: datetime, limit: int) -> int:
        """Remove rows of the partition that were booked before a time and lie behind its position; return how many.

        Looks at the first ``limit`` offsets only: those that follow were booked later.
        """
        stands = partition_offsets.c
        here = and_(_booked.topic == topic, _booked.partition == partition)
        first = (
            select(_booked.incarnation, _booked.record_offset, _booked.settled_at)
            .join(partition_offsets, and_(stands.topic == _booked.topic, stands.partition == _booked.partition))
            .where(
                here,
                tuple_(_booked.incarnation, _booked.record_offset) < tuple_(stands.incarnation, stands.next_offset),
            )
            .order_by(_booked.incarnation, _booked.record_offset)
            .limit(limit)
            .cte("first")
        )
        same = and_(_booked.incarnation == first.c.incarnation, _booked.record_offset == first.c.record_offset)
        return connection.execute(delete(ledger).where(here, same, first.c.settled_at < before)).rowcount

    @writes
    def delete_lost_offsets(self, connection: Connection, before: datetime) -> int:
        """Forget the lost offsets that were noticed before a time; return how many entries."""
        return connection.execute(delete(offset_gaps).where(offset_gaps.c.noticed_at < before)).rowcount


def _is_closed_long_ago(app: str) -> tuple[ColumnElement[bool], ...]:
    return (
        traces.c.state == literal_column("'done'"),
        traces.c.app == app,
        traces.c.finished_at < app_cutoff(app),
    )


def _count(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> int:
    return connection.scalars(select(func.count()).select_from(table).where(*conditions)).one()
