"""Where a database stands, in three tables.

``schema_head`` is Alembic's own. ``schema_revisions`` has each revision since 0008 with its kind: workers look there at
their start. ``alembic_version`` was Alembic's table up to release 0.1.0, whose workers start only where it says 0007.
It goes on saying so, for as long as they can work; what 0.2.0 and later add is not entered there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, text

from migrations.revisions import LAST_UNDECLARED, config, described

HEAD_TABLE = "schema_head"
OLD_HEAD_TABLE = "alembic_version"


def adopt(connection: Connection) -> None:
    """Let Alembic go on in its own table from where a release up to 0.1.0 has brought the database."""
    context = MigrationContext.configure(connection, opts={"version_table": HEAD_TABLE})
    with connection.begin():
        found, shown = context.get_current_revision(), _shown(connection)
        if shown is not None and found != shown and (found is None or found <= LAST_UNDECLARED):
            context.stamp(ScriptDirectory.from_config(config()), shown)


def enter(
    ctx: MigrationContext,
    step: MigrationInfo,
    heads: Collection[str],
    run_args: Mapping[str, Any],  # noqa: ARG001 - Alembic calls by name
) -> None:
    """Enter a step, in its own transaction: Alembic calls this behind every one."""
    connection = ctx.connection
    assert connection is not None  # noqa: S101 - None only where Alembic prints SQL instead of running it
    script = step.up_revision
    assert isinstance(script, Script)  # noqa: S101 - revisions of a chain have one each
    _enter_revision(connection, script, is_upgrade=step.is_upgrade)
    _show(connection, min(max(heads), LAST_UNDECLARED) if heads else None)


def _enter_revision(connection: Connection, script: Script, *, is_upgrade: bool) -> None:
    revision = described(script)
    if revision.kind is None or not _exists(connection, "schema_revisions"):
        return
    values = {"number": revision.number, "kind": revision.kind.value, "completes": revision.completes}
    if is_upgrade:
        insert = "INSERT INTO schema_revisions (revision, kind, completes) VALUES (:number, :kind, :completes)"
        connection.execute(text(insert), values)
    else:
        connection.execute(text("DELETE FROM schema_revisions WHERE revision = :number"), values)


def _shown(connection: Connection) -> str | None:
    """The revision that workers up to 0.1.0 see."""
    if not _exists(connection, OLD_HEAD_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {OLD_HEAD_TABLE}"))  # noqa: S608 - a constant
    return None if found is None else str(found)


def _show(connection: Connection, revision: str | None) -> None:
    if _shown(connection) == revision:
        return
    if not _exists(connection, OLD_HEAD_TABLE):
        MigrationContext.configure(connection)._ensure_version_table()  # noqa: SLF001 - as Alembic itself makes it
    connection.execute(text(f"DELETE FROM {OLD_HEAD_TABLE}"))  # noqa: S608 - a constant
    if revision is not None:
        insert = text(f"INSERT INTO {OLD_HEAD_TABLE} (version_num) VALUES (:revision)")  # noqa: S608 - a constant
        connection.execute(insert, {"revision": revision})


def _exists(connection: Connection, table: str) -> bool:
    return connection.scalar(text("SELECT to_regclass(:table) IS NOT NULL"), {"table": table}) is True
