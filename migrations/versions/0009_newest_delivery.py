"""When and where the content of an interaction came last, by which it is decided which content is current."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.execute("ALTER TABLE interactions ADD COLUMN newest_delivery jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE interactions DROP COLUMN newest_delivery")
