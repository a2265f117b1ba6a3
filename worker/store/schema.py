"""Whether this version of the worker can work on the database as it was migrated."""

from __future__ import annotations

from migrations.revisions import head_revision, needed_revision
from worker.errors import WorkerError
from worker.store.server import Schema, Server


def require_usable_schema(server: Server) -> None:
    """Raise WorkerError unless this version can work on the database.

    It can on every schema from the one it was written for up to those of later releases that have not removed what
    this version uses, so that a database may be migrated while workers run, and they are replaced one by one.
    """
    problem = schema_problem(server.schema(), knows=head_revision(), needs=needed_revision())
    if problem:
        raise WorkerError(problem)


def schema_problem(found: Schema, *, knows: str, needs: str) -> str | None:
    """What keeps a worker whose newest revision is ``knows`` from the database, and what to do; None if nothing does.

    ``needs`` is the oldest revision that it can use. Revisions are numbers of four digits.
    """
    at = f"the database is at revision {found.revision or 'none'}"
    if found.revision is None or found.revision < needs:
        remedy = "run gasp-worker migrate, then what its --roles-sql prints if this login is not the owner's"
        return f"{at}, this version needs {needs}: {remedy}"
    if found.revision > knows and found.oldest_worker is not None and found.oldest_worker > knows:
        remedy = "install the version of gasp-worker that it was migrated with"
        return f"{at}, which only workers that know {found.oldest_worker} can use; this version knows {knows}: {remedy}"
    return None
