"""Leases of the review page: who has which task open, or has passed over it. Labels may come from the page.

Workers of the release before know neither, and go on.
"""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
kind = "expand"

_LEASES = """
    CREATE TABLE IF NOT EXISTS review_leases (
        task_pk bigint NOT NULL,
        reviewer text NOT NULL,
        is_skipped boolean NOT NULL,
        leased_until timestamptz NOT NULL,
        CONSTRAINT pk_review_leases PRIMARY KEY (task_pk, reviewer),
        CONSTRAINT fk_review_leases_task_pk_review_tasks FOREIGN KEY (task_pk) REFERENCES review_tasks (id)
    )
"""
# A rule that holds for new rows at once; the rows that are there are looked through afterwards, while all goes on.
_SOURCES = """
    ALTER TABLE review_labels
        DROP CONSTRAINT IF EXISTS ck_review_labels_source,
        ADD CONSTRAINT ck_review_labels_source CHECK (source IN ({sources})) NOT VALID
"""
_LOOK_THROUGH = "ALTER TABLE review_labels VALIDATE CONSTRAINT ck_review_labels_source"


def upgrade() -> None:
    op.execute(_LEASES)
    with op.get_context().autocommit_block():
        op.execute(_SOURCES.format(sources="'topic', 'file', 'sql', 'page'"))
        op.execute(_LOOK_THROUGH)


def downgrade() -> None:
    op.execute("UPDATE review_labels SET source = 'file' WHERE source = 'page'")
    op.execute(_SOURCES.format(sources="'topic', 'file', 'sql'"))
    op.execute(_LOOK_THROUGH)
    op.execute("DROP TABLE review_leases")
