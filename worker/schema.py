"""Whether the database is what this version of the worker was written for."""

from __future__ import annotations

from migrations.upgrade import head_revision
from worker.errors import WorkerError
from worker.store import Store


def require_current_schema(store: Store) -> None:
    """Raise WorkerError unless the database is at the revision that this version was written for."""
    found, wanted = store.schema_revision(), head_revision()
    if found != wanted:
        message = f"the database is at revision {found or 'none'}, this version needs {wanted}: run gasp-worker migrate"
        raise WorkerError(message)
