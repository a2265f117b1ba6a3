"""Sentences that claim nothing and thoughts in an answer are kinds and reasons of their own.

Each rule takes what it took before and more, so that workers of the release before go on. Their words are not read
anywhere, so that these workers do not mind new ones.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
kind = "expand"

# Rules that hold for new rows at once; the rows that are there are looked through afterwards, while all goes on.
_WIDER = """
    ALTER TABLE sentences
        DROP CONSTRAINT IF EXISTS ck_sentences_kind,
        DROP CONSTRAINT IF EXISTS ck_sentences_skip_reason,
        ADD CONSTRAINT ck_sentences_kind CHECK (
            kind IN ('prose', 'list_item', 'table_row', 'table_rule', 'heading', 'code', 'thought')
        ) NOT VALID,
        ADD CONSTRAINT ck_sentences_skip_reason CHECK (
            skip_reason IN (
                'heading', 'code', 'table_rule', 'too_short', 'past_window', 'no_passages', 'refusal',
                'question_too_long', 'not_finite', 'thought', 'no_claim'
            )
        ) NOT VALID
"""
_AS_BEFORE = """
    ALTER TABLE sentences
        DROP CONSTRAINT IF EXISTS ck_sentences_kind,
        DROP CONSTRAINT IF EXISTS ck_sentences_skip_reason,
        ADD CONSTRAINT ck_sentences_kind CHECK (
            kind IN ('prose', 'list_item', 'table_row', 'table_rule', 'heading', 'code')
        ) NOT VALID,
        ADD CONSTRAINT ck_sentences_skip_reason CHECK (
            skip_reason IN (
                'heading', 'code', 'table_rule', 'too_short', 'past_window', 'no_passages', 'refusal',
                'question_too_long', 'not_finite'
            )
        ) NOT VALID
"""
_PARTS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'sentences'::regclass ORDER BY 1"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute(_WIDER)
        _look_through()


def downgrade() -> None:
    op.execute("UPDATE sentences SET skip_reason = 'too_short' WHERE skip_reason IN ('thought', 'no_claim')")
    op.execute("UPDATE sentences SET kind = 'prose' WHERE kind = 'thought'")
    op.execute(_AS_BEFORE)
    _look_through()


def _look_through() -> None:
    weeks = op.get_bind().execute(text(_PARTS)).scalars().all()
    for name in (*weeks, "sentences"):
        op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_kind")
        op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_skip_reason")
