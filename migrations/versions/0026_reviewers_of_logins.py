"""Who entered a label by plain SQL, and which reviewers a login may speak for.

Workers of the release before leave the first empty, and know nothing of the second. Nobody is mapped yet: a login
speaks for the reviewer of its own name, as it did where it named none.
"""

from __future__ import annotations

from alembic import op

from migrations.definitions import applied_definitions, apply_definitions, take_back_definitions

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
kind = "expand"

_LOGINS = """
    CREATE TABLE IF NOT EXISTS reviewer_logins (
        login text NOT NULL,
        reviewer text NOT NULL,
        CONSTRAINT pk_reviewer_logins PRIMARY KEY (login, reviewer)
    )
"""


def upgrade() -> None:
    # Each on its own: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE review_labels ADD COLUMN IF NOT EXISTS entered_by text")
        op.execute(_LOGINS)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    take_back_definitions(op.get_bind(), revision)
    op.execute("ALTER TABLE review_labels DROP COLUMN entered_by")
    op.execute("DROP TABLE reviewer_logins")
