"""Runs the revisions on the connection that ``migrations.upgrade`` has opened, locked and given its timeouts."""

from __future__ import annotations

from alembic import context

from migrations.records import HEAD_TABLE, enter

context.configure(
    connection=context.config.attributes["connection"],
    transaction_per_migration=True,
    version_table=HEAD_TABLE,
    on_version_apply=enter,
)
with context.begin_transaction():
    context.run_migrations()
