"""The tables by week: made ahead of time, and dropped as a whole when retention has passed them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Integer, func, select, text

WEEKLY_TABLES = ("passages", "sentences", "chunk_attributions")
"""What is partitioned by week."""

AHEAD_DAYS = 28
"""How far ahead the weeks are made; a week that nobody made would stop every settlement in it."""

# Whoever waits for a table's lock stops everyone who comes after, so nobody waits long.
_LOCK_TIMEOUT = "1s"

_WEEKS = text("""
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)
""")


def ensure_weeks(connection: Connection, ahead_days: int) -> int:
    """Make what is missing of the weeks from now to ``ahead_days`` ahead; return how many tables were made."""
    _wait_briefly(connection)
    until = func.now() + timedelta(days=ahead_days)
    return connection.scalars(select(func.ensure_weeks(func.now(), until, type_=Integer))).one()


def drop_weeks(connection: Connection, table: str, before: datetime) -> int:
    """Drop those weeks of one of the WEEKLY_TABLES that end before a time; return how many.

    None is dropped that the longest period still covers, nor any if some app is kept for ever.
    """
    _wait_briefly(connection)
    return connection.scalars(select(func.drop_weeks(table, before, type_=Integer))).one()


def weeks_before(connection: Connection, before: datetime) -> int:
    """How many tables ``drop_weeks`` would drop, of all the WEEKLY_TABLES."""
    names = connection.scalars(_WEEKS, {"tables": list(WEEKLY_TABLES)})
    return sum(_end(name) <= before for name in names)


def _end(name: str) -> datetime:
    """When the week of a table ends, which is named by year and number as in passages_2026w49."""
    monday = datetime.strptime(f"{name[-7:]}1", "%Gw%V%u").replace(tzinfo=UTC)
    return monday + timedelta(days=7)


def _wait_briefly(connection: Connection) -> None:
    """For this transaction only."""
    connection.execute(select(func.set_config("lock_timeout", _LOCK_TIMEOUT, True)))  # noqa: FBT003 - is_local
