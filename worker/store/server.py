"""The database itself: whether it answers, and how far it was migrated."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from worker.store.repository import Repository, reads


class Server(Repository):
    """The server and the schema, whatever is stored there."""

    @reads
    def ping(self, connection: Connection) -> str:
        """Ask the server for its version, such as ``18.6``; raises StoreError if it cannot be reached."""
        return str(connection.scalar(text("SHOW server_version"))).split(" ", 1)[0]

    @reads
    def schema_revision(self, connection: Connection) -> str | None:
        """The revision the database was migrated to, or None if it never was."""
        if connection.scalar(select(func.to_regclass("alembic_version"))) is None:
            return None
        revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return None if revision is None else str(revision)
