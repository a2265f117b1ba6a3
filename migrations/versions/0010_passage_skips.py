"""Why a passage is no evidence and was not read."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.execute("ALTER TABLE passages ADD COLUMN skip_reason text")


def downgrade() -> None:
    op.execute("ALTER TABLE passages DROP COLUMN skip_reason")
