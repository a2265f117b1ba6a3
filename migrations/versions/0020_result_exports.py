"""Results that are sent back to the systems that the exchanges came from: a row for each verdict and system.

Workers of release 0.1.0 send none.
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
kind = "expand"

_RESULT_EXPORTS = """
CREATE TABLE result_exports (
    id bigint GENERATED ALWAYS AS IDENTITY,
    verdict_id bigint NOT NULL,
    destination text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    attempts integer NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_result_exports PRIMARY KEY (id),
    CONSTRAINT uq_result_exports_verdict_id_destination UNIQUE (verdict_id, destination),
    CONSTRAINT fk_result_exports_verdict_id_verdicts FOREIGN KEY (verdict_id) REFERENCES verdicts ON DELETE CASCADE,
    CONSTRAINT ck_result_exports_destination CHECK (destination <> ''),
    CONSTRAINT ck_result_exports_state CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT ck_result_exports_attempts CHECK (attempts >= 0),
    CONSTRAINT ck_result_exports_lease
        CHECK (num_nulls(lease_owner, leased_until) = CASE WHEN state = 'running' THEN 0 ELSE 2 END),
    CONSTRAINT ck_result_exports_finished CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL))
);
CREATE INDEX ix_result_exports_claim ON result_exports (destination, id) WHERE state = 'waiting';
CREATE INDEX ix_result_exports_open ON result_exports (state) WHERE state <> 'done'
"""


def upgrade() -> None:
    op.execute(_RESULT_EXPORTS)


def downgrade() -> None:
    op.execute("DROP TABLE result_exports")
