"""An index for what all apps together have asked people about today."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
kind = "expand"

# Concurrently, because tasks are written all the time. An attempt that was broken off leaves an index that is not used,
# which the second statement makes anew.
_INDEX = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_review_tasks_created_at ON review_tasks (created_at)",
    "REINDEX INDEX CONCURRENTLY ix_review_tasks_created_at",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _INDEX:
            op.execute(statement)


def downgrade() -> None:
    op.execute("DROP INDEX ix_review_tasks_created_at")
