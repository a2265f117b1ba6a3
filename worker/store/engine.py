"""The connections: how they are opened, and how a piece of work becomes one transaction on one of them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from migrations.database_url import engine_url
from migrations.encoding import require_utf8
from worker.store.errors import StoreConflict, StoreNotReady, StoreUnavailable, WeekMissing
from worker.store.faults import translated
from worker.store.weeks import AHEAD_DAYS, ensure_weeks

Result = TypeVar("Result")

_CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 30
_POOL_SIZE = 4
_POOL_OVERFLOW = 4
_ATTEMPTS = 5
_LONGEST_PAUSE_S = 0.05

# PostgreSQL's code for a write on a server, or in a session, that only reads.
_READ_ONLY = "25006"

_SERVER_SETTINGS = {
    "statement_timeout": "60s",
    "lock_timeout": "30s",
    # A worker that is frozen in a transaction holds its partitions' rows; this frees them for the next owner.
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
}
# How soon a dead peer is noticed: without these a read from a server that vanished waits for ever.
_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def open_engine(url: str, *, application_name: str) -> Engine:
    """Make the pool; nothing is connected yet. Raises StoreNotReady if the URL is none.

    Connecting raises it where the database's encoding is not UTF8.
    """
    try:
        address = engine_url(url)
    except ValueError as error:
        raise StoreNotReady(str(error)) from None
    own = " ".join(f"-c {name}={value}" for name, value in _SERVER_SETTINGS.items())
    asked = address.query.get("options", "")
    options = f"{own} {asked if isinstance(asked, str) else ' '.join(asked)}".strip()
    engine = create_engine(
        address,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_OVERFLOW,
        pool_timeout=_POOL_TIMEOUT_S,
        pool_pre_ping=True,
        hide_parameters=True,
        json_serializer=partial(json.dumps, allow_nan=False, ensure_ascii=False),
        connect_args={
            "application_name": application_name,
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "options": options,
            **_KEEPALIVE,
        },
    )
    require_utf8(engine, StoreNotReady)
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction, committed on leaving without an error. Raises StoreError and nothing of the driver's."""
    try:
        with translated(engine.url), engine.begin() as connection:
            yield connection
    except StoreUnavailable as error:
        if error.sqlstate == _READ_ONLY:
            # After a failover the server that writes is another one, and these connections would never find it.
            discard_connections(engine)
        raise


def discard_connections(engine: Engine) -> None:
    """Close the idle connections now, and those in use when their transaction ends."""
    pool = engine.pool
    engine.dispose()
    # What is in use comes back to the old pool, which nobody would empty any more.
    event.listen(pool, "checkin", _close)
    pool.dispose()


def _close(_: object, entry: ConnectionPoolEntry) -> None:
    entry.close()


def transact(engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Run ``work`` in one transaction and return its result.

    It is run again if it met another transaction, or if a week was missing, which is then made. ``work`` may therefore
    run several times and must not change anything outside the database. Raises StoreError; StoreConflict if every
    attempt met another one.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            with transaction(engine) as connection:
                return work(connection)
        except StoreConflict:
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 - spreads the attempts, guards nothing
        except WeekMissing:
            with transaction(engine) as connection:
                ensure_weeks(connection, AHEAD_DAYS)
    with transaction(engine) as connection:
        return work(connection)
