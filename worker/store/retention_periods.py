"""How long the data of each app is kept.

A period is read anew by each statement that removes something, so that a longer one holds from the moment it is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from worker.store.repository import Repository, reads, writes
from worker.store.tables import interactions, retention_periods

_periods = retention_periods.c


@dataclass(frozen=True, slots=True)
class Period:
    """How many days an app's data is kept; None for ever. The app None is every app without a period of its own."""

    app: str | None
    keep_days: int | None


class RetentionPeriods(Repository):
    """The period of each app, where the app None is every app without one of its own."""

    @reads
    def all(self, connection: Connection) -> tuple[Period, ...]:
        """The periods that were set, by app; that of every other app first."""
        found = select(_periods.app, _periods.keep_days).order_by(_periods.app.nulls_first())
        return tuple(Period(row.app, row.keep_days) for row in connection.execute(found))

    @writes
    def set(self, connection: Connection, period: Period) -> None:
        """Set or change an app's period. It holds at once."""
        entered = insert(retention_periods).values(app=period.app, keep_days=period.keep_days)
        changed = {"keep_days": entered.excluded.keep_days, "updated_at": func.now()}
        connection.execute(entered.on_conflict_do_update(constraint="uq_retention_periods_app", set_=changed))

    @writes
    def clear(self, connection: Connection, app: str) -> bool:
        """Let the app follow the period of every other app again. False if it had none of its own."""
        return connection.execute(delete(retention_periods).where(_periods.app == app)).rowcount == 1

    @reads
    def cutoff(self, connection: Connection) -> datetime | None:
        """The time before which nothing is kept, whatever its app; None if the data of some app is kept for ever."""
        return cutoff_of_all(connection)


def cutoff_of_all(connection: Connection) -> datetime | None:
    """The time before which nothing is kept, whatever its app; None if the data of some app is kept for ever."""
    return connection.execute(select(_cutoff_of_all())).scalar_one()


def is_old(app: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The conditions of interactions of the app that are older than its period; none, if it is kept for ever."""
    return interactions.c.app == app, interactions.c.stored_at < app_cutoff(app)


def app_cutoff(app: str) -> ColumnElement[datetime]:
    """The time before which nothing of the app is kept; NULL if it is kept for ever."""
    own_first = (
        select(_periods.keep_days)
        .where(or_(_periods.app == app, _periods.app.is_(None)))
        .order_by(_periods.app.nulls_last())
        .limit(1)
        .scalar_subquery()
    )
    return _days_ago(own_first)


def _cutoff_of_all() -> ColumnElement[datetime | None]:
    each_ends = and_(func.bool_or(_periods.app.is_(None)), func.count() == func.count(_periods.keep_days))
    return case((each_ends, _days_ago(func.max(_periods.keep_days))))


def _days_ago(days: ColumnElement[Any]) -> ColumnElement[datetime]:
    return func.now() - days * timedelta(days=1)
