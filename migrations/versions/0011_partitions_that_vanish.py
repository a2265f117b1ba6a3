"""What is lost with a topic that was deleted: how far it went is not known, and some of its partitions may be gone."""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    # Each on its own, and each may be done again: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE partition_offsets ADD COLUMN IF NOT EXISTS vanished_at timestamptz")
        op.execute("ALTER TABLE offset_gaps ALTER COLUMN to_offset DROP NOT NULL")
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
    op.execute("UPDATE offset_gaps SET to_offset = from_offset WHERE to_offset IS NULL")
    op.execute("ALTER TABLE offset_gaps ALTER COLUMN to_offset SET NOT NULL")
    op.execute("ALTER TABLE partition_offsets DROP COLUMN vanished_at")
