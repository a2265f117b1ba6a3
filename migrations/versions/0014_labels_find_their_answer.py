"""Which task a label is about: of the answer that was stored when it came, also if nobody knows the task it names."""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    # Each on its own: no two views are locked at once.
    with op.get_context().autocommit_block():
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
