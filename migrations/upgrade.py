"""Brings a database to a revision, while workers use it. Any number of processes may do it at once: they queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from migrations.database_url import engine_url, without_secrets
from migrations.encoding import require_utf8
from migrations.errors import MigrationError
from migrations.records import adopt
from migrations.revisions import config

# Any fixed number serves, as long as nothing else in the database takes it as an advisory lock.
_LOCK_KEY = 0x67617370
_CONNECT_TIMEOUT_S = 10
_QUEUE_TIMEOUT_S = 300
_QUEUE_INTERVAL_S = 0.1
_STATEMENT_TIMEOUT_S = 300
# Whoever comes behind a statement that waits for a lock waits too. Therefore it gives up soon, lets them pass, and is
# tried again: a query of some minutes delays the migration, and nobody else by more than the lock timeout.
_LOCK_TIMEOUT_S = 1
_RETRY_PAUSE_S = 2.0
_PATIENCE_S = 600

_LOCK_NOT_AVAILABLE, _DEADLOCK = "55P03", "40P01"
# What to do about it, by PostgreSQL's code, where the server's sentence does not say.
_REMEDIES = {
    "42501": "migrate with the GASP_DATABASE_URL of the database's owner",
    _LOCK_NOT_AVAILABLE: "something uses the table: look in pg_stat_activity, and run gasp-worker migrate again",
    "57014": "it took too long: look in pg_stat_activity, and run gasp-worker migrate again",
}


def upgrade(url: str, revision: str = "head", *, on_wait: Callable[[str], None] = lambda _: None) -> None:
    """Apply the revisions up to ``revision``; nothing happens if they are applied already.

    One that meets a lock is broken off and tried again for ten minutes; ``on_wait`` is told of each time. Raises
    MigrationError if the URL is none, or if the database cannot be reached or refuses.
    """
    with _migrating(url) as (connection, alembic):
        deadline = time.monotonic() + _PATIENCE_S
        while not _upgraded(connection, alembic, revision, is_last_try=time.monotonic() > deadline):
            on_wait(f"something uses what is to be changed; trying again in {_RETRY_PAUSE_S:g} s")
            time.sleep(_RETRY_PAUSE_S)


def downgrade(url: str, revision: str) -> None:
    """Take back the revisions after ``revision`` (``base``: all of them, with the data). Raises as upgrade does.

    No worker may run meanwhile.
    """
    with _migrating(url) as (_, alembic):
        command.downgrade(alembic, revision)


def _upgraded(connection: Connection, alembic: Config, revision: str, *, is_last_try: bool) -> bool:
    """Whether it went through; False if it met a lock. The revisions before that one stay applied."""
    try:
        command.upgrade(alembic, revision)
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        if is_last_try or state not in {_LOCK_NOT_AVAILABLE, _DEADLOCK}:
            raise
        connection.rollback()
        return False
    return True


@contextmanager
def _migrating(url: str) -> Iterator[tuple[Connection, Config]]:
    """Connect, wait for the lock, set the timeouts; turn errors into ours without the URL's password."""
    try:
        address = engine_url(url)
    except ValueError as error:
        raise MigrationError(str(error)) from None
    options = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "gasp-migrate"}
    engine = create_engine(address, poolclass=NullPool, connect_args=options)
    require_utf8(engine, MigrationError)
    alembic = config()
    try:
        with engine.connect() as connection:
            _require_own_session(connection)
        with engine.connect() as connection, _locked(connection):
            adopt(connection)
            alembic.attributes["connection"] = connection
            yield connection, alembic
    except (SQLAlchemyError, CommandError) as error:
        raise MigrationError(without_secrets(_message(error), address)) from None
    finally:
        engine.dispose()


def _require_own_session(connection: Connection) -> None:
    """Raise MigrationError where a pooler lends server connections: our lock would stay behind on one of them."""
    driver = connection.connection.driver_connection
    told = driver.info.backend_pid if isinstance(driver, psycopg.Connection) else None
    if told != connection.scalar(text("SELECT pg_backend_pid()")):
        raise MigrationError(
            "a connection pooler such as PgBouncer stands before the database, and a migration needs a session of its "
            "own: give this command the server's own address in GASP_DATABASE_URL"
        )


@contextmanager
def _locked(connection: Connection) -> Iterator[None]:
    """Hold a session lock, which outlives the single transactions. Closing the connection gives it back."""
    deadline = time.monotonic() + _QUEUE_TIMEOUT_S
    while not _try_lock(connection):
        if time.monotonic() > deadline:
            message = (
                f"another migration has been running for {_QUEUE_TIMEOUT_S} s; pg_stat_activity lists gasp-migrate"
            )
            raise MigrationError(message)
        time.sleep(_QUEUE_INTERVAL_S)
    timeouts = text(
        "SELECT set_config('lock_timeout', :lock, false), set_config('statement_timeout', :statement, false)"
    )
    connection.execute(timeouts, {"lock": f"{_LOCK_TIMEOUT_S}s", "statement": f"{_STATEMENT_TIMEOUT_S}s"})
    connection.commit()
    yield


def _try_lock(connection: Connection) -> bool:
    """Ask in a transaction of its own: one that waited would block a revision that builds an index concurrently."""
    with connection.begin():
        return bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK_KEY}))


def _message(error: SQLAlchemyError | CommandError) -> str:
    """The server's own sentence, without the statement and without the DETAIL, which may quote rows."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, CommandError):
        return f"{cause}; if the database is of a newer version, run gasp-worker migrate of that"
    if not isinstance(cause, psycopg.Error):
        return str(cause).strip()
    message = cause.diag.message_primary or str(cause).strip()
    remedy = _REMEDIES.get(cause.sqlstate) if cause.sqlstate else "look at GASP_DATABASE_URL"
    return f"{message}; {remedy}" if remedy else message
