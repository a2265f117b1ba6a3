"""One verdict for each answer in the views, the last; all of them in v_verdicts. A task says why it was withdrawn."""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    # Each on its own: no two views are locked at once.
    with op.get_context().autocommit_block():
        apply_definitions(op.get_bind(), applied_definitions(revision))
    op.execute("ALTER TABLE review_tasks ADD COLUMN closed_because text")


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
    op.execute("ALTER TABLE review_tasks DROP COLUMN closed_because")
