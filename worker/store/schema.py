"""Whether the database is what this version of the worker was written for."""

from __future__ import annotations

from migrations.upgrade import head_revision
from worker.errors import WorkerError
from worker.store.server import Server


def require_current_schema(server: Server) -> None:
    """Raise WorkerError unless the database is at the revision that this version was written for."""
    found, wanted = server.schema_revision() or "none", head_revision() or "none"
    if found != wanted:
        raise WorkerError(f"the database is at revision {found}, this version needs {wanted}: {_remedy(found, wanted)}")


def _remedy(found: str, wanted: str) -> str:
    # Revisions are numbers of four digits.
    if found != "none" and found > wanted:
        return "install the version of gasp-worker that it was migrated with"
    return "run gasp-worker migrate, and deploy/sql/roles.sql if this login is not the owner's"
