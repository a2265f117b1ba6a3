"""How long the data of each app is kept, and the removal of what is older, in batches.

A period is read anew by each statement that removes something, so that a longer one holds from the moment it is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    and_,
    any_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from worker.store.review_tasks import withdraw_old, withdraw_removed
from worker.store.tables import (
    attribution_jobs,
    interactions,
    ledger,
    offset_gaps,
    partition_offsets,
    rescore_jobs,
    retention_periods,
    verdicts,
)
from worker.store.weeks import weeks_before

_periods = retention_periods.c
_logged = interactions.c
_booked = ledger.c


@dataclass(frozen=True, slots=True)
class Period:
    """How many days an app's data is kept; None for ever. The app None is every app without a period of its own."""

    app: str | None
    keep_days: int | None


@dataclass(frozen=True, slots=True)
class Overdue:
    """What is older than its period. A weekly table holds the passages, sentences or attributions of one week."""

    weekly_tables: int
    interactions: int
    ledger_rows: int
    offset_gaps: int


def periods(connection: Connection) -> tuple[Period, ...]:
    """The periods that were set, by app; that of every other app first."""
    found = select(_periods.app, _periods.keep_days).order_by(_periods.app.nulls_first())
    return tuple(Period(row.app, row.keep_days) for row in connection.execute(found))


def set_period(connection: Connection, period: Period) -> None:
    """Set or change an app's period. It holds at once."""
    entered = insert(retention_periods).values(app=period.app, keep_days=period.keep_days)
    changed = {"keep_days": entered.excluded.keep_days, "updated_at": func.now()}
    connection.execute(entered.on_conflict_do_update(constraint="uq_retention_periods_app", set_=changed))


def clear_period(connection: Connection, app: str) -> bool:
    """Let the app follow the period of every other app again. False if it had none of its own."""
    return connection.execute(delete(retention_periods).where(_periods.app == app)).rowcount == 1


def cutoff_of_all(connection: Connection) -> datetime | None:
    """The time before which nothing is kept, whatever its app; None if the data of some app is kept for ever."""
    return connection.execute(select(_cutoff_of_all())).scalar_one()


def apps(connection: Connection) -> list[str]:
    """Every app that has interactions. Goes from app to app in the index, whatever their number of rows."""
    first = select(func.min(_logged.app).label("app")).cte("apps", recursive=True)
    following = select(func.min(_logged.app)).where(_logged.app > first.c.app).scalar_subquery()
    found = first.union_all(select(following).where(first.c.app.is_not(None)))
    return list(connection.scalars(select(found.c.app).where(found.c.app.is_not(None))))


def overdue(connection: Connection) -> Overdue:
    """Count what the next run would remove."""
    before = cutoff_of_all(connection)
    old = sum(_count(connection, interactions, *_is_old(app)) for app in apps(connection))
    if before is None:
        return Overdue(0, old, 0, 0)
    return Overdue(
        weeks_before(connection, before),
        old,
        _count(connection, ledger, _booked.settled_at < before),
        _count(connection, offset_gaps, offset_gaps.c.noticed_at < before),
    )


def delete_open_jobs(connection: Connection, before: datetime, limit: int) -> int:
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


def delete_interactions(connection: Connection, app: str, limit: int) -> int:
    """Remove the app's oldest interactions that are older than its period, with all that belongs to them.

    Returns how many went, at most ``limit``. Their jobs go first, in the order in which a worker that ends a job
    takes the rows, so that the two cannot wait for each other. Their review tasks stay, withdrawn if they were open.
    """
    oldest = select(_logged.id).where(*_is_old(app)).order_by(_logged.stored_at).limit(limit)
    doomed = any_(literal(list(connection.scalars(oldest)), ARRAY(BigInteger)))
    judged = select(verdicts.c.id).where(verdicts.c.interaction_pk == doomed)
    connection.execute(delete(rescore_jobs).where(rescore_jobs.c.interaction_pk == doomed))
    connection.execute(delete(attribution_jobs).where(attribution_jobs.c.verdict_id.in_(judged)))
    removed = connection.execute(delete(interactions).where(_logged.id == doomed)).rowcount
    # Afterwards, so that one is found that was written until we had the interaction's row.
    withdraw_removed(connection, app)
    return removed


def delete_ledger(connection: Connection, topic: str, partition: int, before: datetime, limit: int) -> int:
    """Remove rows of the partition that were booked before a time and lie behind its position; return how many.

    Looks at the first ``limit`` offsets only: those that follow were booked later.
    """
    stands = partition_offsets.c
    here = and_(_booked.topic == topic, _booked.partition == partition)
    first = (
        select(_booked.incarnation, _booked.record_offset, _booked.settled_at)
        .join(partition_offsets, and_(stands.topic == _booked.topic, stands.partition == _booked.partition))
        .where(
            here, tuple_(_booked.incarnation, _booked.record_offset) < tuple_(stands.incarnation, stands.next_offset)
        )
        .order_by(_booked.incarnation, _booked.record_offset)
        .limit(limit)
        .cte("first")
    )
    same = and_(_booked.incarnation == first.c.incarnation, _booked.record_offset == first.c.record_offset)
    return connection.execute(delete(ledger).where(here, same, first.c.settled_at < before)).rowcount


def delete_gaps(connection: Connection, before: datetime) -> int:
    """Remove the offset gaps that were noticed before a time; return how many."""
    return connection.execute(delete(offset_gaps).where(offset_gaps.c.noticed_at < before)).rowcount


def _is_old(app: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Of the app and older than its period; never, if it is kept for ever."""
    own_first = (
        select(_periods.keep_days)
        .where(or_(_periods.app == app, _periods.app.is_(None)))
        .order_by(_periods.app.nulls_last())
        .limit(1)
        .scalar_subquery()
    )
    return _logged.app == app, _logged.stored_at < _days_ago(own_first)


def _cutoff_of_all() -> ColumnElement[datetime | None]:
    each_ends = and_(func.bool_or(_periods.app.is_(None)), func.count() == func.count(_periods.keep_days))
    return case((each_ends, _days_ago(func.max(_periods.keep_days))))


def _days_ago(days: ColumnElement[Any]) -> ColumnElement[datetime]:
    return func.now() - days * timedelta(days=1)


def _count(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> int:
    return connection.scalars(select(func.count()).select_from(table).where(*conditions)).one()
