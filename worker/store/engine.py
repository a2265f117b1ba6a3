"""The connections: how they are opened, and how they are closed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from sqlalchemy import URL, Engine, TextClause, create_engine, event, text
from sqlalchemy.engine.characteristics import ConnectionCharacteristic
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect, ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry

from migrations.database_url import engine_url
from migrations.encoding import require_utf8
from worker.store.errors import StoreNotReady
from worker.store.session import ServerSilent, endless, open_session

_POOL_TIMEOUT_S = 10
_POOL_SIZE = 4
_POOL_OVERFLOW = 4

READ_ONLY = "postgresql_readonly"
"""The execution option by which a transaction only reads."""

# They hold for a transaction each: a pooler gives the next one another server connection, and this one to others.
_TRANSACTION_SETTINGS = {
    "statement_timeout": "60s",
    "lock_timeout": "30s",
    # A worker that is frozen in a transaction holds its partitions' rows; this frees them for the next owner.
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
}
_OPTION = re.compile(r"(?:-c\s*|--)(\w+)\s*=")
# How soon a dead peer is noticed: without these a read from a server that vanished waits for ever.
_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def open_engine(url: str, *, application_name: str, left_s: Callable[[], float] = endless) -> Engine:
    """Make the pool; nothing is connected yet. Raises StoreNotReady if the URL is none.

    ``left_s`` says for how many seconds from now on anything may still take. Connecting raises StoreNotReady where the
    database's encoding is not UTF8.
    """
    try:
        address = engine_url(url)
    except ValueError as error:
        raise StoreNotReady(str(error)) from None
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
            **_KEEPALIVE,
        },
    )
    dialect = cast("DefaultDialect", engine.dialect)
    dialect.connection_characteristics = dialect.connection_characteristics.union({READ_ONLY: _ReadOnly()})
    require_utf8(engine, StoreNotReady)
    event.listen(engine, "handle_error", _tell_silence)
    event.listen(engine, "do_connect", lambda _, __, ___, parameters: open_session(parameters, left_s))
    return engine


def transaction_settings(url: URL) -> TextClause:
    """The statement with which every transaction begins; what the URL's ``options`` set themselves is left to them."""
    asked = url.query.get("options", "")
    own = set(_OPTION.findall(asked if isinstance(asked, str) else " ".join(asked)))
    names = [name for name in _TRANSACTION_SETTINGS if name not in own]
    calls = (f"set_config('{name}', '{_TRANSACTION_SETTINGS[name]}', true)" for name in names)
    return text(f"SELECT {', '.join(calls) or '1'}")


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


def _tell_silence(context: ExceptionContext) -> None:
    """Let a server that is silent when an idle connection is tried be a fault at once.

    SQLAlchemy would take another connection in its place, and wait for that as long again.
    """
    if context.is_pre_ping and isinstance(context.original_exception, ServerSilent):
        context.is_disconnect = False


def discard_connections(engine: Engine) -> None:
    """Close the idle connections now, and those in use when their transaction ends."""
    pool = engine.pool
    engine.dispose()
    # What is in use comes back to the old pool, which nobody would empty any more.
    event.listen(pool, "checkin", _close)
    pool.dispose()


def close_connections(engine: Engine) -> None:
    """Discard the connections; what is opened from now on, by a thread that ends late, closes with its transaction."""
    discard_connections(engine)
    event.listen(engine.pool, "checkin", _close)


def _close(_: object, entry: ConnectionPoolEntry) -> None:
    entry.close()
