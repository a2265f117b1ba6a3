"""Turns what the driver raises into the store's errors. Everything that leaves the store passes through here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from migrations.database_url import without_secrets
from worker.store.errors import (
    PartitionMissing,
    StoreBusy,
    StoreConflict,
    StoreError,
    StoreNotReady,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
)

# Keys that two workers can fill at the same moment, and rows that retention can delete, without anyone being wrong.
_CONTENDED = {
    "uq_interactions_content",
    "uq_interactions_revision",
    "uq_interactions_current",
    "uq_verdicts_interaction_pk_scorer_id",
    "uq_scorers_identity",
    "fk_verdicts_interaction_pk_interactions",
    "fk_ledger_interaction_pk_interactions",
    "fk_ledger_items_interaction_pk_interactions",
    "fk_rescore_jobs_interaction_pk_interactions",
}
_CHECK_VIOLATION = "23514"
# PostgreSQL's error codes, or their classes: the first two characters.
_ERRORS_BY_SQLSTATE: dict[str, type[StoreError]] = {
    "08": StoreUnavailable,  # connection exception
    "22": StoreRejected,  # data exception
    "23": StoreRejected,  # integrity constraint violation
    "25": StoreUnavailable,  # invalid transaction state; 25006: failed over to a read-only server
    "28": StoreNotReady,  # invalid authorization
    "3D": StoreNotReady,  # no such database
    "3F": StoreNotReady,  # no such schema
    "40": StoreConflict,  # rollback: deadlock, serialization failure
    "40003": StoreUnavailable,  # it is not known whether the statement, or the COMMIT, was completed
    "42": StoreNotReady,  # no such table, no right to it
    "53": StoreUnavailable,  # out of disk, memory or connections
    "54": StoreRejected,  # over a limit of the program, such as an index entry's size
    "55": StoreUnavailable,  # object in use
    "55P03": StoreBusy,  # lock not available
    "57": StoreUnavailable,  # cancelled by a timeout, shutting down, starting up
    "57014": StoreTimeout,  # cancelled by a timeout, or by somebody
    "58": StoreUnavailable,  # input/output error
    "XX": StoreUnavailable,  # internal error
}

# What to do about it, where the server's sentence does not say.
_REMEDIES = {
    "25006": "name the server that writes in GASP_DATABASE_URL, or add target_session_attrs=read-write to it",
    "28000": "look at user and password in GASP_DATABASE_URL",
    "28P01": "look at user and password in GASP_DATABASE_URL",
    "3D000": "look at the database in GASP_DATABASE_URL",
    "42501": "as the owner run what gasp-worker migrate --roles-sql prints, or take the owner's GASP_DATABASE_URL",
    "42703": "run gasp-worker migrate",
    "42883": "run gasp-worker migrate",
    "42P01": "run gasp-worker migrate",
    "53100": "make room on the disk of the server in GASP_DATABASE_URL",
    "53300": "raise the server's max_connections, or run fewer workers",
    "55P03": "look in pg_stat_activity for who holds it",
    "57014": "look in pg_stat_activity for what it waits for",
}

_AWAY = "look at the server in GASP_DATABASE_URL"

# What the driver says of a connection that these settings never get, by what to do about it.
_HOPELESS = {
    "look at sslmode and sslrootcert in GASP_DATABASE_URL, and at the host name": (
        "certificate verify failed",
        "does not match host name",
        "server does not support SSL",
        "root certificate file",
    ),
    "look at sslcert and sslkey in GASP_DATABASE_URL": (
        "certificate file",
        "private key file",
        "alert unknown ca",
        "alert certificate required",
        "requires a valid client certificate",
        "certificate authentication failed",
    ),
    "look at sslmode in GASP_DATABASE_URL": ("no encryption", "sslmode"),
    "look at the options of GASP_DATABASE_URL": ("invalid connection option", 'invalid "ssl'),
    "look at user, password and database in GASP_DATABASE_URL": (
        "authentication failed",
        "does not exist",
        "no password supplied",
        "no pg_hba.conf entry",
        "not permitted to log in",
        "permission denied for database",
        # PgBouncer's words.
        "no such user",
        "no such database",
    ),
    "let PgBouncer ignore them (ignore_startup_parameters), or take them out of GASP_DATABASE_URL": (
        "unsupported startup parameter",
    ),
}


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Raise the store's error for whatever the driver raises inside.

    The original is not chained: it quotes statements, parameters and rows.
    """
    try:
        yield
    except (SQLAlchemyError, psycopg.Error, ValueError, OverflowError) as error:
        raise _store_error(error, url) from None


def _store_error(error: Exception, url: URL) -> StoreError:
    cause = error.orig if isinstance(error, StatementError) and error.orig is not None else error
    if isinstance(cause, psycopg.Error):
        return _from_driver(cause, url)
    if isinstance(error, DBAPIError | PoolTimeoutError):
        return StoreUnavailable(f"no database connection: {type(error).__name__}; {_AWAY}")
    if isinstance(cause, ValueError | OverflowError):
        # A lone surrogate, NaN in JSON: psycopg raises these as they are.
        return StoreRejected(f"a value cannot be sent to the database: {type(cause).__name__}")
    return StoreError(f"the database layer failed: {type(error).__name__}")


def _from_driver(cause: psycopg.Error, url: URL) -> StoreError:
    sqlstate = cause.sqlstate
    constraint = cause.diag.constraint_name
    if sqlstate is None:
        return _without_sqlstate(cause, url)
    if constraint in _CONTENDED:
        return StoreConflict(f"another transaction was quicker: {constraint}", sqlstate=sqlstate)
    if sqlstate == _CHECK_VIOLATION and constraint is None:
        # Every check of ours has a name; without one it is "no partition of relation found for row".
        message = (
            f"no week takes the row: table {cause.diag.table_name}; gasp-worker run --roles maintain makes them ahead"
        )
        return PartitionMissing(message, sqlstate=sqlstate)
    kind = _ERRORS_BY_SQLSTATE.get(sqlstate) or _ERRORS_BY_SQLSTATE.get(sqlstate[:2], StoreError)
    if kind is StoreRejected:
        named = f", constraint {constraint}" if constraint else ""
        return StoreRejected(f"refused: {type(cause).__name__}{named}", sqlstate=sqlstate, constraint=constraint)
    message = without_secrets(cause.diag.message_primary or type(cause).__name__, url)
    return kind(f"{message}; {_REMEDIES[sqlstate]}" if sqlstate in _REMEDIES else message, sqlstate=sqlstate)


def _without_sqlstate(cause: psycopg.Error, url: URL) -> StoreError:
    """Failures on this side of the wire. Those of connecting name host and reason, which an operator needs."""
    unknown_option = isinstance(cause, psycopg.ProgrammingError) and str(cause).startswith("invalid connection option")
    # InternalError: the driver has lost the thread, as when PgBouncer says behind a result that the server is gone.
    if unknown_option or isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
        return _connection_error(without_secrets(" ".join(str(cause).split()), url))
    if isinstance(cause, psycopg.DataError):
        return StoreRejected(f"a value cannot be sent to the database: {type(cause).__name__}")
    return StoreError(f"the database driver failed: {type(cause).__name__}")


def _connection_error(message: str) -> StoreError:
    """A refused log-in reaches us as text: the protocol's code is lost where several addresses were tried."""
    for remedy, phrases in _HOPELESS.items():
        if any(phrase in message for phrase in phrases):
            return StoreNotReady(f"{message}; {remedy}")
    return StoreUnavailable(f"{message}; {_AWAY}")
