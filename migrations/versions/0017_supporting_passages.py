"""All passages that stand in for each other as support of a sentence, and that its support is spread over too many.

Workers of release 0.1.0 leave both empty; the views then show the one passage that they name.
"""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
kind = "expand"

_COLUMNS = """
ALTER TABLE sentences
    ADD COLUMN IF NOT EXISTS supporting_passages integer[],
    ADD COLUMN IF NOT EXISTS support_unlocated boolean
"""


def upgrade() -> None:
    # Each on its own: no two views are locked at once.
    with op.get_context().autocommit_block():
        op.execute(_COLUMNS)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    # Views read the columns, one of them all that there are, so they are made anew when these are gone.
    op.execute("DROP VIEW v_flagged_sentences, v_sentences, v_chunk_usage")
    op.execute("ALTER TABLE sentences DROP COLUMN supporting_passages, DROP COLUMN support_unlocated")
    take_back_definitions(op.get_bind(), revision)
