"""The weekly partitions: made ahead of time, and dropped as a whole when retention has passed them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Integer, func, select

from worker.store.partitioning import AHEAD_DAYS, ensure_partitions, wait_briefly
from worker.store.repository import Repository, writes


class WeeklyPartitions(Repository):
    """The partitions of the WEEKLY_TABLES, one a week. Raises StoreBusy if somebody uses a table for too long."""

    @writes
    def ensure(self, connection: Connection, ahead_days: int = AHEAD_DAYS) -> int:
        """Make the missing partitions of the weeks from now to ``ahead_days`` ahead; return how many."""
        return ensure_partitions(connection, ahead_days)

    @writes
    def drop(self, connection: Connection, table: str, before: datetime) -> int:
        """Drop those of one of the WEEKLY_TABLES whose weeks end before a time; return how many.

        None is dropped that the longest period still covers, nor any if some app is kept for ever.
        """
        wait_briefly(connection)
        return connection.scalars(select(func.drop_weeks(table, before, type_=Integer))).one()
