"""Tables partitioned by week: which they are, and how their partitions are made ahead of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Integer, func, select, text

WEEKLY_TABLES = ("passages", "sentences", "chunk_attributions")
"""What is partitioned by week."""

AHEAD_DAYS = 28
"""How far ahead partitions are made; a week without one would stop every settlement in it."""

# Whoever waits for a table's lock stops everyone who comes after, so nobody waits long.
_LOCK_TIMEOUT = "1s"

_WEEKS = text("""
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)
""")


def ensure_partitions(connection: Connection, ahead_days: int) -> int:
    """Make the missing partitions of the weeks from now to ``ahead_days`` ahead; return how many."""
    wait_briefly(connection)
    until = func.now() + timedelta(days=ahead_days)
    return connection.scalars(select(func.ensure_weeks(func.now(), until, type_=Integer))).one()


def partitions_before(connection: Connection, before: datetime) -> int:
    """How many partitions ``WeeklyPartitions.drop`` would drop, of all the WEEKLY_TABLES."""
    names = connection.scalars(_WEEKS, {"tables": list(WEEKLY_TABLES)})
    return sum(_end(name) <= before for name in names)


def _end(name: str) -> datetime:
    """When the week of a table ends, which is named by year and number as in passages_2026w49."""
    monday = datetime.strptime(f"{name[-7:]}1", "%Gw%V%u").replace(tzinfo=UTC)
    return monday + timedelta(days=7)


def wait_briefly(connection: Connection) -> None:
    """Do not wait long for a lock in this transaction."""
    connection.execute(select(func.set_config("lock_timeout", _LOCK_TIMEOUT, True)))  # noqa: FBT003 - is_local
