"""What reviewers taught: a version's correction of the detector's scores, and what of a sentence it reads.

A worker of the release before leaves all of it empty, and judges by another detector, whose versions have no
correction. A review task keeps the terms of its sentences, because its labels outlive the answer.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
kind = "expand"

# Rules that hold for new rows at once; the rows that are there are looked through afterwards, while all goes on.
_STATEMENTS = (
    "ALTER TABLE thresholds ADD COLUMN IF NOT EXISTS correction jsonb",
    """
    ALTER TABLE sentences
        ADD COLUMN IF NOT EXISTS terms real[],
        ADD COLUMN IF NOT EXISTS correction double precision,
        DROP CONSTRAINT IF EXISTS ck_sentences_terms_finite,
        DROP CONSTRAINT IF EXISTS ck_sentences_correction_finite,
        ADD CONSTRAINT ck_sentences_terms_finite
            CHECK (array_position(terms, NULL) IS NULL AND NOT terms && '{NaN,Infinity,-Infinity}') NOT VALID,
        ADD CONSTRAINT ck_sentences_correction_finite CHECK (abs(correction) < 'Infinity') NOT VALID
    """,
    """
    ALTER TABLE review_sentences
        ADD COLUMN IF NOT EXISTS terms real[],
        ADD COLUMN IF NOT EXISTS correction double precision,
        DROP CONSTRAINT IF EXISTS ck_review_sentences_terms_finite,
        DROP CONSTRAINT IF EXISTS ck_review_sentences_correction_finite,
        ADD CONSTRAINT ck_review_sentences_terms_finite
            CHECK (array_position(terms, NULL) IS NULL AND NOT terms && '{NaN,Infinity,-Infinity}') NOT VALID,
        ADD CONSTRAINT ck_review_sentences_correction_finite CHECK (abs(correction) < 'Infinity') NOT VALID
    """,
    "ALTER TABLE review_sentences VALIDATE CONSTRAINT ck_review_sentences_terms_finite",
    "ALTER TABLE review_sentences VALIDATE CONSTRAINT ck_review_sentences_correction_finite",
)
_PARTS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'sentences'::regclass ORDER BY 1"


def upgrade() -> None:
    # Each on its own: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
        for name in (*op.get_bind().execute(text(_PARTS)).scalars().all(), "sentences"):
            op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_terms_finite")
            op.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT ck_sentences_correction_finite")
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    # Views read the columns, one of them all that there are, so they are made anew when these are gone.
    op.execute("""
        DROP VIEW v_flagged_sentences, v_sentences, v_review_consensus, v_quality, v_calibration_runs,
            v_threshold_history
    """)
    op.execute("ALTER TABLE review_sentences DROP COLUMN terms, DROP COLUMN correction")
    op.execute("ALTER TABLE sentences DROP COLUMN terms, DROP COLUMN correction")
    op.execute("ALTER TABLE thresholds DROP COLUMN correction")
    take_back_definitions(op.get_bind(), revision)
