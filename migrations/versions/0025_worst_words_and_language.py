"""The words of a sentence that are grounded least, and the language of an answer.

Workers of the release before leave both empty.
"""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
kind = "expand"

_WORST = """
    ALTER TABLE sentences
        ADD COLUMN IF NOT EXISTS worst_start integer,
        ADD COLUMN IF NOT EXISTS worst_end integer
"""
_LANGUAGE = """
    ALTER TABLE verdicts
        ADD COLUMN IF NOT EXISTS language text,
        ADD COLUMN IF NOT EXISTS language_supported boolean
"""


def upgrade() -> None:
    # Each on its own: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        op.execute(_WORST)
        op.execute(_LANGUAGE)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    # Views read the columns, one of them all that there are, so they are made anew when these are gone.
    op.execute("DROP VIEW v_flagged_sentences, v_sentences, v_interactions, v_verdicts")
    op.execute("ALTER TABLE sentences DROP COLUMN worst_start, DROP COLUMN worst_end")
    op.execute("ALTER TABLE verdicts DROP COLUMN language, DROP COLUMN language_supported")
    take_back_definitions(op.get_bind(), revision)
