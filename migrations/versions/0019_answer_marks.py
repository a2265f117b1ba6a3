"""Which spans of an answer are no part of what it says.

Workers of release 0.1.0 read no format that has any.
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.execute("ALTER TABLE interactions ADD COLUMN answer_marks jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE interactions DROP COLUMN answer_marks")
