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

_KINDS = "'prose', 'list_item', 'table_row', 'table_rule', 'heading', 'code'"
_REASONS = (
    "'heading', 'code', 'table_rule', 'too_short', 'past_window', 'no_passages', 'refusal', 'question_too_long', "
    "'not_finite'"
)
_PARTS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'sentences'::regclass ORDER BY 1"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        _replace(f"{_KINDS}, 'thought'", f"{_REASONS}, 'thought', 'no_claim'")


def downgrade() -> None:
    op.execute("UPDATE sentences SET skip_reason = 'too_short' WHERE skip_reason IN ('thought', 'no_claim')")
    op.execute("UPDATE sentences SET kind = 'prose' WHERE kind = 'thought'")
    _replace(_KINDS, _REASONS)


def _replace(kinds: str, reasons: str) -> None:
    """Rules that hold for new rows at once; then the rows that are there are looked through, while all goes on."""
    op.execute(
        "ALTER TABLE sentences DROP CONSTRAINT IF EXISTS ck_sentences_kind, "
        "DROP CONSTRAINT IF EXISTS ck_sentences_skip_reason, "
        f"ADD CONSTRAINT ck_sentences_kind CHECK (kind IN ({kinds})) NOT VALID, "
        f"ADD CONSTRAINT ck_sentences_skip_reason CHECK (skip_reason IN ({reasons})) NOT VALID"
    )
    weeks = op.get_bind().execute(text(_PARTS)).scalars().all()
    for name in (*weeks, "sentences"):
        op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_kind")
        op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_skip_reason")
