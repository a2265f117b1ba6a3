"""How often a partition's next batch was begun, so that one that ends its worker comes back smaller.

Workers of release 0.1.0 leave both counts alone.
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE partition_offsets ADD COLUMN batch_attempts integer NOT NULL DEFAULT 0, "
        "ADD COLUMN offset_attempts integer NOT NULL DEFAULT 0"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE partition_offsets DROP COLUMN batch_attempts, DROP COLUMN offset_attempts")
