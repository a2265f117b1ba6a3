"""What became of each exchange, for shares by reason: of messages, of their parts, and of traces."""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
kind = "expand"

# Concurrently, because both tables are written all the time. An attempt that was broken off leaves an index that is not
# used, which is made anew.
_INDEXES = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_ledger_items_settled_at ON ledger_items USING brin (settled_at)",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_traces_finished ON traces (finished_at) WHERE state = 'done'",
    "REINDEX INDEX CONCURRENTLY ix_ledger_items_settled_at",
    "REINDEX INDEX CONCURRENTLY ix_traces_finished",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _INDEXES:
            op.execute(statement)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
    op.execute("DROP INDEX ix_ledger_items_settled_at, ix_traces_finished")
