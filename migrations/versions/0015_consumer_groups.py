"""Which consumer group reads a partition, so that two of them are told apart from two workers of one.

Workers of release 0.1.0 leave it alone.
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.execute("ALTER TABLE partition_offsets ADD COLUMN consumer_group text")


def downgrade() -> None:
    op.execute("ALTER TABLE partition_offsets DROP COLUMN consumer_group")
