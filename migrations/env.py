"""Runs the revisions on the connection that ``migrations.upgrade`` has opened, locked and given its timeouts."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
