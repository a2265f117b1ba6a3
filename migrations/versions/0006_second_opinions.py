"""Second opinions on flagged sentences: who is to be asked about which, and what was said."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Concurrently, because verdicts are written all the time. Made anew where an earlier attempt was broken off.
_INDEX = (
    "DROP INDEX CONCURRENTLY IF EXISTS ix_verdicts_attributed_flagged",
    "CREATE INDEX CONCURRENTLY ix_verdicts_attributed_flagged ON verdicts (attributed_at) WHERE n_flagged > 0",
)

# The reference includes the time, as that of the sentences does. They cannot be referred to themselves: their weeks are
# dropped as a whole.
_SECOND_OPINIONS = """
CREATE TABLE second_opinions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    verdict_id bigint NOT NULL,
    scored_at timestamptz NOT NULL,
    sentence_index integer NOT NULL,
    verifier text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    priority double precision NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    label text,
    p_unsupported double precision,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_second_opinions PRIMARY KEY (id),
    CONSTRAINT uq_second_opinions_sentence UNIQUE (verdict_id, sentence_index, verifier),
    CONSTRAINT fk_second_opinions_verdict_id_verdicts
        FOREIGN KEY (verdict_id, scored_at) REFERENCES verdicts (id, scored_at) ON DELETE CASCADE,
    CONSTRAINT ck_second_opinions_index CHECK (sentence_index >= 0),
    CONSTRAINT ck_second_opinions_verifier CHECK (verifier <> ''),
    CONSTRAINT ck_second_opinions_state CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT ck_second_opinions_priority_finite CHECK (abs(priority) < 'Infinity'),
    CONSTRAINT ck_second_opinions_attempts CHECK (attempts >= 0),
    CONSTRAINT ck_second_opinions_lease
        CHECK (num_nulls(lease_owner, leased_until) = CASE WHEN state = 'running' THEN 0 ELSE 2 END),
    CONSTRAINT ck_second_opinions_finished CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL)),
    CONSTRAINT ck_second_opinions_label CHECK (label IN ('supported', 'partly', 'unsupported', 'cant_tell')),
    CONSTRAINT ck_second_opinions_said CHECK (state <> 'done' OR label IS NOT NULL),
    CONSTRAINT ck_second_opinions_p_unsupported CHECK (0 <= p_unsupported AND p_unsupported <= 1)
);
CREATE INDEX ix_second_opinions_claim ON second_opinions (verifier, priority, id) WHERE state = 'waiting';
CREATE INDEX ix_second_opinions_open ON second_opinions (state) WHERE state <> 'done';
CREATE INDEX ix_second_opinions_created_at ON second_opinions (created_at)
"""

# A row is an opinion on a sentence of a current answer. ``agrees`` is NULL where the verifier cannot tell.
_V_SECOND_OPINIONS = """
CREATE VIEW v_second_opinions AS
SELECT
    coalesce(i.occurred_at, i.received_at, i.stored_at) AS time,
    i.app,
    i.interaction_id,
    i.revision,
    s.sentence_index,
    s.gap,
    s.flagged,
    o.p_unsupported,
    o.label,
    o.verifier,
    CASE WHEN o.label <> 'cant_tell' THEN s.flagged = (o.label <> 'supported') END AS agrees,
    c.label AS scorer,
    v.scorer_id
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN second_opinions o ON o.verdict_id = v.id
JOIN sentences s
    ON s.verdict_id = o.verdict_id AND s.sentence_index = o.sentence_index AND s.scored_at = o.scored_at
JOIN scorers c ON c.id = v.scorer_id
WHERE i.is_current AND o.state = 'done'
"""


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _INDEX:
            op.execute(statement)
    for statement in (_SECOND_OPINIONS, _V_SECOND_OPINIONS):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP VIEW v_second_opinions")
    op.execute("DROP TABLE second_opinions")
    op.execute("DROP INDEX ix_verdicts_attributed_flagged")
