"""What workers may know of the schema, one rule of what reviewers agree on, and names that mean one thing each.

``v_lost_offsets`` is the new name of ``v_offset_gaps`` and ``refresh_review_task`` that of ``settle_review_task``; the
version for every app shows as ``*/1``, where ``default/1`` could also be that of an app called default.
"""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
kind = "expand"

_SCHEMA_REVISIONS = """
CREATE TABLE schema_revisions (
    revision text NOT NULL,
    kind text NOT NULL,
    completes text,
    applied_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_schema_revisions PRIMARY KEY (revision),
    CONSTRAINT ck_schema_revisions_kind CHECK (kind IN ('expand', 'contract')),
    CONSTRAINT ck_schema_revisions_completes CHECK ((kind = 'contract') = (completes IS NOT NULL))
)
"""


def upgrade() -> None:
    # Each on its own: no two views are locked at once.
    with op.get_context().autocommit_block():
        apply_definitions(op.get_bind(), applied_definitions(revision))
    op.execute(_SCHEMA_REVISIONS)


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
    op.execute("DROP TABLE schema_revisions")
