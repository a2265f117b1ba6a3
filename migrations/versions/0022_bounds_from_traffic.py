"""Bounds that come from an app's own traffic until it has labels, and the share of it that its policy flags.

Workers of release 0.1.0 judge by such a version as by any other, and set policies without the share.
"""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
kind = "expand"

# Each on its own, and such that it may be run again: no two tables are locked at once.
_STATEMENTS = (
    """
    ALTER TABLE thresholds
        DROP CONSTRAINT IF EXISTS ck_thresholds_learned_from,
        ADD CONSTRAINT ck_thresholds_learned_from
            CHECK (learned_from IN ('seeded', 'traffic', 'manual', 'calibrated')) NOT VALID
    """,
    "ALTER TABLE thresholds VALIDATE CONSTRAINT ck_thresholds_learned_from",
    """
    ALTER TABLE threshold_activations
        DROP CONSTRAINT IF EXISTS ck_threshold_activations_reason,
        ADD CONSTRAINT ck_threshold_activations_reason
            CHECK (reason IN ('seeded', 'traffic', 'calibrated', 'manual', 'rollback', 'withdrawn')) NOT VALID
    """,
    "ALTER TABLE threshold_activations VALIDATE CONSTRAINT ck_threshold_activations_reason",
    """
    ALTER TABLE review_policies
        ADD COLUMN IF NOT EXISTS flag_share double precision NOT NULL DEFAULT 0.15
            CONSTRAINT ck_review_policies_flag_share CHECK (flag_share > 0 AND flag_share < 1)
    """,
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)


def downgrade() -> None:
    # What is nearest: neither a person nor labels chose these bounds.
    op.execute("""
        ALTER TABLE review_policies DROP COLUMN flag_share;
        UPDATE threshold_activations SET reason = 'seeded' WHERE reason = 'traffic';
        ALTER TABLE threshold_activations
            DROP CONSTRAINT ck_threshold_activations_reason,
            ADD CONSTRAINT ck_threshold_activations_reason
                CHECK (reason IN ('seeded', 'calibrated', 'manual', 'rollback', 'withdrawn'));
        UPDATE thresholds SET learned_from = 'seeded' WHERE learned_from = 'traffic';
        ALTER TABLE thresholds
            DROP CONSTRAINT ck_thresholds_learned_from,
            ADD CONSTRAINT ck_thresholds_learned_from CHECK (learned_from IN ('seeded', 'manual', 'calibrated'))
    """)
