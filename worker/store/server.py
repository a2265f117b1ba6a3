"""The database itself: whether it answers, and how far it was migrated."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select, text

from worker.store.repository import Repository, reads
from worker.store.tables import schema_revisions


@dataclass(frozen=True, slots=True)
class Schema:
    """The newest revision that was applied, None if none was; and the oldest that a worker must know to use it.

    ``oldest_worker`` is None where nothing was removed yet that an earlier release needs.
    """

    revision: str | None
    oldest_worker: str | None = None


class Server(Repository):
    """The server and the schema, whatever is stored there."""

    @reads
    def ping(self, connection: Connection) -> str:
        """Ask the server for its version, such as ``18.6``; raises StoreError if it cannot be reached."""
        return str(connection.scalar(text("SHOW server_version"))).split(" ", 1)[0]

    @reads
    def schema(self, connection: Connection) -> Schema:
        """How far the database was migrated, and which workers can use it."""
        if _exists(connection, schema_revisions.name):
            newest = select(func.max(schema_revisions.c.revision), func.max(schema_revisions.c.completes))
            return Schema(*connection.execute(newest).one())
        # Up to revision 0007 there is the table of Alembic alone.
        if not _exists(connection, "alembic_version"):
            return Schema(None)
        return Schema(connection.scalar(text("SELECT version_num FROM alembic_version")))


def _exists(connection: Connection, table: str) -> bool:
    return connection.scalar(select(func.to_regclass(table))) is not None
