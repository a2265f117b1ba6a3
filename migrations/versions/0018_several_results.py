"""Messages that hold several exchanges, and exchanges that lie in several messages: traces, and the pieces of them.

Workers of release 0.1.0 know neither; they book one result a record, leave the new columns empty, and collect nothing.
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

# A queue as the others: what waits is due at ``run_after``, what runs is leased, what is done is closed.
_TRACES = """
CREATE TABLE IF NOT EXISTS traces (
    id bigint GENERATED ALWAYS AS IDENTITY,
    system text NOT NULL,
    trace_id text NOT NULL,
    app text,
    first_at timestamptz NOT NULL DEFAULT now(),
    last_at timestamptz NOT NULL DEFAULT now(),
    last_broker_time timestamptz,
    pieces integer NOT NULL DEFAULT 0,
    steps integer NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    version integer NOT NULL DEFAULT 0,
    has_root boolean NOT NULL DEFAULT false,
    is_incomplete boolean NOT NULL DEFAULT false,
    late_pieces integer NOT NULL DEFAULT 0,
    closings integer NOT NULL DEFAULT 0,
    closed_by text,
    outcome text,
    reason text,
    detail text,
    interaction_pks bigint[] NOT NULL DEFAULT '{}',
    emptied_at timestamptz,
    state text NOT NULL DEFAULT 'waiting',
    run_after timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    finished_at timestamptz,
    CONSTRAINT pk_traces PRIMARY KEY (id),
    CONSTRAINT uq_traces_system_trace_id UNIQUE (system, trace_id),
    CONSTRAINT ck_traces_state CHECK (state IN ('waiting', 'running', 'done')),
    CONSTRAINT ck_traces_lease CHECK ((state = 'running') = (leased_until IS NOT NULL)),
    CONSTRAINT ck_traces_done CHECK ((state = 'done') = (finished_at IS NOT NULL)),
    CONSTRAINT ck_traces_closed CHECK (state <> 'done' OR (closed_by IS NOT NULL AND outcome IS NOT NULL)),
    CONSTRAINT ck_traces_closed_by CHECK (closed_by IN ('complete', 'time_out', 'too_many_open', 'too_large')),
    CONSTRAINT ck_traces_outcome CHECK (outcome IN ('scored', 'skipped', 'dead_lettered')),
    CONSTRAINT ck_traces_reason CHECK (outcome IS NULL OR (reason IS NULL) = (outcome = 'scored')),
    CONSTRAINT ck_traces_counts
        CHECK (least(pieces, steps, bytes, version, late_pieces, closings, attempts) >= 0)
)
"""

_TRACE_PIECES = """
CREATE TABLE IF NOT EXISTS trace_pieces (
    trace_pk bigint NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    incarnation integer NOT NULL,
    record_offset bigint NOT NULL,
    trace_id text NOT NULL,
    within text,
    adapter text NOT NULL,
    steps text NOT NULL,
    digest bytea NOT NULL,
    broker_time timestamptz,
    value_bytes integer NOT NULL,
    key bytea,
    headers jsonb,
    CONSTRAINT pk_trace_pieces PRIMARY KEY (trace_pk, topic, partition, incarnation, record_offset, trace_id),
    CONSTRAINT fk_trace_pieces_trace_pk_traces FOREIGN KEY (trace_pk) REFERENCES traces ON DELETE CASCADE
)
"""

# Some logs name only the step above: the keys of such steps belong to the trace of the uppermost.
_TRACE_ALIASES = """
CREATE TABLE IF NOT EXISTS trace_aliases (
    system text NOT NULL,
    trace_id text NOT NULL,
    trace_pk bigint NOT NULL,
    CONSTRAINT pk_trace_aliases PRIMARY KEY (system, trace_id),
    CONSTRAINT fk_trace_aliases_trace_pk_traces FOREIGN KEY (trace_pk) REFERENCES traces ON DELETE CASCADE
)
"""

_TRACE_INDEXES = (
    "CREATE INDEX IF NOT EXISTS ix_trace_aliases_trace_pk ON trace_aliases (trace_pk)",
    "CREATE INDEX IF NOT EXISTS ix_traces_claim ON traces (run_after, id) WHERE state = 'waiting'",
    "CREATE INDEX IF NOT EXISTS ix_traces_running ON traces (leased_until) WHERE state = 'running'",
    "CREATE INDEX IF NOT EXISTS ix_traces_open ON traces (app, first_at) WHERE state <> 'done'",
    "CREATE INDEX IF NOT EXISTS ix_traces_closed ON traces (app, finished_at) WHERE state = 'done'",
    "CREATE INDEX IF NOT EXISTS ix_traces_kept ON traces (finished_at) WHERE state = 'done' AND emptied_at IS NULL",
)

_COLUMNS = (
    "ALTER TABLE interactions ADD COLUMN IF NOT EXISTS sources jsonb, ADD COLUMN IF NOT EXISTS trace jsonb",
    "ALTER TABLE partition_offsets ADD COLUMN IF NOT EXISTS end_asked_at timestamptz",
)


def upgrade() -> None:
    # Each on its own, and each may be done again: no two tables or views are locked at once.
    with op.get_context().autocommit_block():
        for statement in (_LEDGER, *_VALIDATED, _LEDGER_ITEMS, *_INDEXES):
            op.execute(statement)
        for statement in (_TRACES, _TRACE_PIECES, _TRACE_ALIASES, *_TRACE_INDEXES, *_COLUMNS):
            op.execute(statement)
        apply_definitions(op.get_bind(), applied_definitions(revision))


def downgrade() -> None:
    # Views lose columns only when they are made anew.
    op.execute("DROP VIEW v_dead_letters, v_interactions, v_verdicts")
    take_back_definitions(op.get_bind(), revision)
    op.execute("""
        DROP TABLE ledger_items, trace_pieces, trace_aliases, traces;
        ALTER TABLE interactions DROP COLUMN sources, DROP COLUMN trace;
        ALTER TABLE partition_offsets DROP COLUMN end_asked_at;
        DELETE FROM ledger WHERE outcome = 'collected';
        ALTER TABLE ledger
            DROP COLUMN results,
            DROP CONSTRAINT ck_ledger_outcome,
            DROP CONSTRAINT ck_ledger_reason,
            ADD CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('scored', 'labelled', 'skipped', 'dead_lettered')),
            ADD CONSTRAINT ck_ledger_reason CHECK ((reason IS NULL) = (outcome IN ('scored', 'labelled')))
    """)
