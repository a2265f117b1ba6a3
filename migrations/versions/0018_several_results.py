"""Records that hold several exchanges, and parts of a trace: a row for each result, and the outcome ``collected``.

Workers of release 0.1.0 know neither; they book one result a record, and leave ``results`` empty.
"""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
kind = "expand"

# The wider rule is looked at for new rows at once and for old ones afterwards, when nobody has to wait for it.
_LEDGER = """
ALTER TABLE ledger
    ADD COLUMN IF NOT EXISTS results integer CONSTRAINT ck_ledger_results CHECK (results > 1),
    DROP CONSTRAINT IF EXISTS ck_ledger_outcome,
    DROP CONSTRAINT IF EXISTS ck_ledger_reason,
    ADD CONSTRAINT ck_ledger_outcome
        CHECK (outcome IN ('scored', 'labelled', 'collected', 'skipped', 'dead_lettered')) NOT VALID,
    ADD CONSTRAINT ck_ledger_reason
        CHECK ((reason IS NULL) = (outcome IN ('scored', 'labelled', 'collected'))) NOT VALID
"""

_VALIDATED = (
    "ALTER TABLE ledger VALIDATE CONSTRAINT ck_ledger_outcome",
    "ALTER TABLE ledger VALIDATE CONSTRAINT ck_ledger_reason",
)

_LEDGER_ITEMS = """
CREATE TABLE IF NOT EXISTS ledger_items (
    topic text NOT NULL,
    partition integer NOT NULL,
    incarnation integer NOT NULL,
    record_offset bigint NOT NULL,
    item integer NOT NULL,
    outcome text NOT NULL,
    reason text,
    detail text,
    interaction_pk bigint,
    settled_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_ledger_items PRIMARY KEY (topic, partition, incarnation, record_offset, item),
    CONSTRAINT fk_ledger_items_topic_ledger FOREIGN KEY (topic, partition, incarnation, record_offset)
        REFERENCES ledger ON DELETE CASCADE,
    CONSTRAINT fk_ledger_items_interaction_pk_interactions FOREIGN KEY (interaction_pk)
        REFERENCES interactions ON DELETE SET NULL,
    CONSTRAINT ck_ledger_items_item CHECK (item > 0),
    CONSTRAINT ck_ledger_items_outcome CHECK (outcome IN ('scored', 'collected', 'skipped', 'dead_lettered')),
    CONSTRAINT ck_ledger_items_reason CHECK ((reason IS NULL) = (outcome IN ('scored', 'collected')))
)
"""

_INDEXES = (
    """CREATE INDEX IF NOT EXISTS ix_ledger_items_interaction_pk ON ledger_items (interaction_pk)
        WHERE interaction_pk IS NOT NULL""",
    """CREATE INDEX IF NOT EXISTS ix_ledger_items_dead_letters ON ledger_items (settled_at)
        WHERE outcome = 'dead_lettered'""",
)

_TAKEN_BACK = """
DROP VIEW v_dead_letters;
DROP TABLE ledger_items;
DELETE FROM ledger WHERE outcome = 'collected';
ALTER TABLE ledger
    DROP COLUMN results,
    DROP CONSTRAINT ck_ledger_outcome,
    DROP CONSTRAINT ck_ledger_reason,
    ADD CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('scored', 'labelled', 'skipped', 'dead_lettered')),
    ADD CONSTRAINT ck_ledger_reason CHECK ((reason IS NULL) = (outcome IN ('scored', 'labelled')))
"""


def upgrade() -> None:
    # Each on its own, and each may be done again: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        for statement in (_LEDGER, *_VALIDATED, _LEDGER_ITEMS, *_INDEXES):
            op.execute(statement)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    op.execute(_TAKEN_BACK)
    take_back_definitions(op.get_bind(), revision)
