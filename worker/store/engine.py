"""The connections: how they are opened, and how they are closed."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.characteristics import ConnectionCharacteristic
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.pool import ConnectionPoolEntry

from migrations.database_url import engine_url
from migrations.encoding import require_utf8
from worker.store.errors import StoreNotReady

_CONNECT_TIMEOUT_S = 10
_POOL_TIMEOUT_S = 30
_POOL_SIZE = 4
_POOL_OVERFLOW = 4

READ_ONLY = "postgresql_readonly"
"""The execution option by which a transaction only reads."""

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
    dialect = cast("DefaultDialect", engine.dialect)
    dialect.connection_characteristics = dialect.connection_characteristics.union({READ_ONLY: _ReadOnly()})
    require_utf8(engine, StoreNotReady)
    return engine


class _ReadOnly(ConnectionCharacteristic):
    """Whether the transactions of a connection only read, until it goes back to the pool.

    Then the server decides again. SQLAlchemy's own would ask for READ WRITE from then on: a standby refuses that, and
    a ``default_transaction_read_only`` that somebody has set would not hold.
    """

    def set_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection, value: Any) -> None:  # noqa: ANN401, ARG002 - as the one it replaces
        dbapi_conn.read_only = value

    def reset_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> None:  # noqa: ARG002 - as above
        dbapi_conn.read_only = None

    def get_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> Any:  # noqa: ANN401, ARG002 - as above
        return dbapi_conn.read_only


def discard_connections(engine: Engine) -> None:
    """Close the idle connections now, and those in use when their transaction ends."""
    pool = engine.pool
    engine.dispose()
    # What is in use comes back to the old pool, which nobody would empty any more.
    event.listen(pool, "checkin", _close)
    pool.dispose()


def _close(_: object, entry: ConnectionPoolEntry) -> None:
    entry.close()
