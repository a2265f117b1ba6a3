"""First tables: scorers and thresholds, what was logged, what was found, the work, the books, and the views on them.

Conventions, kept by every revision: constraints are named pk_, uq_, fk_, ck_, ix_ and the table; a time is timestamptz;
a floating-point column has a check that its number is finite (PostgreSQL stores NaN and sorts it above Infinity, so
``abs(x) < 'Infinity'`` excludes both); a word out of a list is text with a check.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SCORERS = """
CREATE TABLE scorers (
    id integer GENERATED ALWAYS AS IDENTITY,
    model text NOT NULL,
    revision text NOT NULL,
    dtype text NOT NULL,
    template text NOT NULL,
    method text NOT NULL,
    label text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_scorers PRIMARY KEY (id),
    CONSTRAINT uq_scorers_identity UNIQUE (model, revision, dtype, template, method)
)
"""

_THRESHOLDS = """
CREATE TABLE thresholds (
    id integer GENERATED ALWAYS AS IDENTITY,
    app text,
    scorer_id integer NOT NULL,
    version integer NOT NULL,
    flag_below double precision NOT NULL,
    attribute_below double precision NOT NULL,
    learned_from text NOT NULL,
    note text,
    created_at timestamptz NOT NULL DEFAULT now(),
    activated_at timestamptz,
    is_active boolean NOT NULL DEFAULT false,
    CONSTRAINT pk_thresholds PRIMARY KEY (id),
    CONSTRAINT fk_thresholds_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT uq_thresholds_app_scorer_id_version UNIQUE NULLS NOT DISTINCT (app, scorer_id, version),
    CONSTRAINT ck_thresholds_app CHECK (app <> ''),
    CONSTRAINT ck_thresholds_version CHECK (version >= 1),
    CONSTRAINT ck_thresholds_flag_below_finite CHECK (abs(flag_below) < 'Infinity'),
    CONSTRAINT ck_thresholds_attribute_below_finite CHECK (abs(attribute_below) < 'Infinity'),
    CONSTRAINT ck_thresholds_order CHECK (attribute_below >= flag_below),
    CONSTRAINT ck_thresholds_learned_from CHECK (learned_from IN ('seeded', 'manual', 'calibrated')),
    CONSTRAINT ck_thresholds_active CHECK (NOT is_active OR activated_at IS NOT NULL)
)
"""

# The app NULL means every app without a threshold of its own.
_THRESHOLDS_ACTIVE = """
CREATE UNIQUE INDEX uq_thresholds_active ON thresholds (app, scorer_id) NULLS NOT DISTINCT WHERE is_active
"""

_INTERACTIONS = """
CREATE TABLE interactions (
    id bigint GENERATED ALWAYS AS IDENTITY,
    app text NOT NULL,
    interaction_id text NOT NULL,
    revision integer NOT NULL,
    is_current boolean NOT NULL,
    content_hash bytea NOT NULL,
    occurred_at timestamptz,
    received_at timestamptz,
    stored_at timestamptz NOT NULL DEFAULT now(),
    question text NOT NULL,
    answer text NOT NULL,
    generator_model text,
    metadata jsonb NOT NULL,
    repairs text[] NOT NULL,
    adapter text NOT NULL,
    source_topic text NOT NULL,
    source_partition integer NOT NULL,
    source_offset bigint NOT NULL,
    CONSTRAINT pk_interactions PRIMARY KEY (id),
    CONSTRAINT uq_interactions_content UNIQUE (app, interaction_id, content_hash),
    CONSTRAINT uq_interactions_revision UNIQUE (app, interaction_id, revision),
    CONSTRAINT ck_interactions_revision CHECK (revision >= 1),
    CONSTRAINT ck_interactions_content_hash CHECK (octet_length(content_hash) = 32)
)
"""

_INTERACTIONS_CURRENT = """
CREATE UNIQUE INDEX uq_interactions_current ON interactions (app, interaction_id) WHERE is_current
"""

_INTERACTIONS_STORED = "CREATE INDEX ix_interactions_app_stored_at ON interactions (app, stored_at)"

_PASSAGES = """
CREATE TABLE passages (
    interaction_pk bigint NOT NULL,
    position integer NOT NULL,
    passage_id text NOT NULL,
    text text NOT NULL,
    score double precision,
    metadata jsonb NOT NULL,
    CONSTRAINT pk_passages PRIMARY KEY (interaction_pk, position),
    CONSTRAINT fk_passages_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE CASCADE,
    CONSTRAINT ck_passages_position CHECK (position >= 0),
    CONSTRAINT ck_passages_score_finite CHECK (abs(score) < 'Infinity')
)
"""

_VERDICTS = """
CREATE TABLE verdicts (
    id bigint GENERATED ALWAYS AS IDENTITY,
    interaction_pk bigint NOT NULL,
    scorer_id integer NOT NULL,
    threshold_id integer,
    method text NOT NULL,
    skip_reason text,
    lowest_gap double precision,
    context_tokens integer NOT NULL,
    context_tokens_cut integer NOT NULL,
    answer_tokens integer NOT NULL,
    answer_tokens_cut integer NOT NULL,
    n_sentences integer NOT NULL,
    n_scored integer NOT NULL,
    n_flagged integer NOT NULL,
    scored_at timestamptz NOT NULL DEFAULT now(),
    attributed_at timestamptz,
    CONSTRAINT pk_verdicts PRIMARY KEY (id),
    CONSTRAINT uq_verdicts_interaction_pk_scorer_id UNIQUE (interaction_pk, scorer_id),
    CONSTRAINT fk_verdicts_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE CASCADE,
    CONSTRAINT fk_verdicts_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT fk_verdicts_threshold_id_thresholds FOREIGN KEY (threshold_id) REFERENCES thresholds (id),
    CONSTRAINT ck_verdicts_method CHECK (method IN ('two_pass', 'leave_one_out')),
    CONSTRAINT ck_verdicts_skip_reason
        CHECK (skip_reason IN ('empty_answer', 'no_passages', 'refusal', 'question_too_long', 'nothing_to_score')),
    CONSTRAINT ck_verdicts_scored_or_skipped CHECK (skip_reason IS NOT NULL OR lowest_gap IS NOT NULL),
    CONSTRAINT ck_verdicts_lowest_gap_finite CHECK (abs(lowest_gap) < 'Infinity'),
    CONSTRAINT ck_verdicts_tokens
        CHECK (least(context_tokens, context_tokens_cut, answer_tokens, answer_tokens_cut) >= 0),
    CONSTRAINT ck_verdicts_counts CHECK (0 <= n_flagged AND n_flagged <= n_scored AND n_scored <= n_sentences)
)
"""

_SENTENCES = """
CREATE TABLE sentences (
    verdict_id bigint NOT NULL,
    sentence_index integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    kind text NOT NULL,
    n_tokens integer NOT NULL,
    gap double precision,
    jsd_no_context double precision,
    surprisal double precision,
    skip_reason text,
    flagged boolean,
    supporting_chunk integer,
    supporting_passage integer,
    supporting_drop double precision,
    CONSTRAINT pk_sentences PRIMARY KEY (verdict_id, sentence_index),
    CONSTRAINT fk_sentences_verdict_id_verdicts FOREIGN KEY (verdict_id) REFERENCES verdicts (id) ON DELETE CASCADE,
    CONSTRAINT ck_sentences_index CHECK (sentence_index >= 0),
    CONSTRAINT ck_sentences_span CHECK (0 <= start_char AND start_char < end_char),
    CONSTRAINT ck_sentences_kind
        CHECK (kind IN ('prose', 'list_item', 'table_row', 'table_rule', 'heading', 'code')),
    CONSTRAINT ck_sentences_n_tokens CHECK (n_tokens >= 0),
    CONSTRAINT ck_sentences_gap_finite CHECK (abs(gap) < 'Infinity'),
    CONSTRAINT ck_sentences_jsd_no_context_finite CHECK (0 <= jsd_no_context AND jsd_no_context <= 0.6932),
    CONSTRAINT ck_sentences_surprisal_finite CHECK (0 <= surprisal AND surprisal < 'Infinity'),
    CONSTRAINT ck_sentences_skip_reason CHECK (skip_reason IN (
        'heading', 'code', 'table_rule', 'too_short', 'past_window', 'no_passages', 'refusal', 'question_too_long',
        'not_finite'
    )),
    CONSTRAINT ck_sentences_scored_or_skipped CHECK ((gap IS NULL) = (skip_reason IS NOT NULL)),
    CONSTRAINT ck_sentences_all_features CHECK (num_nulls(gap, jsd_no_context, surprisal, flagged) IN (0, 4)),
    CONSTRAINT ck_sentences_supporting CHECK (
        num_nulls(supporting_chunk, supporting_passage) IN (0, 2)
        AND (supporting_chunk IS NULL OR supporting_drop IS NOT NULL)
    ),
    CONSTRAINT ck_sentences_supporting_drop_finite CHECK (abs(supporting_drop) < 'Infinity')
)
"""

_CHUNK_ATTRIBUTIONS = """
CREATE TABLE chunk_attributions (
    verdict_id bigint NOT NULL,
    sentence_index integer NOT NULL,
    chunk_index integer NOT NULL,
    passage_position integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    chunk_group integer NOT NULL,
    drop double precision NOT NULL,
    jsd double precision NOT NULL,
    CONSTRAINT pk_chunk_attributions PRIMARY KEY (verdict_id, sentence_index, chunk_index),
    CONSTRAINT fk_chunk_attributions_verdict_id_sentences
        FOREIGN KEY (verdict_id, sentence_index) REFERENCES sentences (verdict_id, sentence_index) ON DELETE CASCADE,
    CONSTRAINT ck_chunk_attributions_index CHECK (chunk_index >= 0 AND passage_position >= 0),
    CONSTRAINT ck_chunk_attributions_span CHECK (0 <= start_char AND start_char <= end_char),
    CONSTRAINT ck_chunk_attributions_drop_finite CHECK (abs(drop) < 'Infinity'),
    CONSTRAINT ck_chunk_attributions_jsd_finite CHECK (0 <= jsd AND jsd <= 0.6932)
)
"""

_ATTRIBUTION_JOBS = """
CREATE TABLE attribution_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    verdict_id bigint NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    priority double precision NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_attribution_jobs PRIMARY KEY (id),
    CONSTRAINT uq_attribution_jobs_verdict_id UNIQUE (verdict_id),
    CONSTRAINT fk_attribution_jobs_verdict_id_verdicts
        FOREIGN KEY (verdict_id) REFERENCES verdicts (id) ON DELETE CASCADE,
    CONSTRAINT ck_attribution_jobs_state CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT ck_attribution_jobs_priority_finite CHECK (abs(priority) < 'Infinity'),
    CONSTRAINT ck_attribution_jobs_attempts CHECK (attempts >= 0),
    CONSTRAINT ck_attribution_jobs_lease
        CHECK (num_nulls(lease_owner, leased_until) = CASE WHEN state = 'running' THEN 0 ELSE 2 END),
    CONSTRAINT ck_attribution_jobs_finished CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL))
)
"""

_ATTRIBUTION_JOBS_CLAIM = """
CREATE INDEX ix_attribution_jobs_claim ON attribution_jobs (priority, id) WHERE state = 'waiting'
"""

# For the reaper and the backlog: jobs that are done pile up and are in neither index.
_ATTRIBUTION_JOBS_OPEN = "CREATE INDEX ix_attribution_jobs_open ON attribution_jobs (state) WHERE state <> 'done'"

_LEDGER = """
CREATE TABLE ledger (
    topic text NOT NULL,
    partition integer NOT NULL,
    record_offset bigint NOT NULL,
    outcome text NOT NULL,
    reason text,
    detail text,
    interaction_pk bigint,
    value_bytes integer NOT NULL,
    broker_time timestamptz,
    settled_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_ledger PRIMARY KEY (topic, partition, record_offset),
    CONSTRAINT fk_ledger_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE SET NULL,
    CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('scored', 'skipped', 'dead_lettered')),
    CONSTRAINT ck_ledger_reason CHECK ((reason IS NULL) = (outcome = 'scored')),
    CONSTRAINT ck_ledger_record_offset CHECK (record_offset >= 0),
    CONSTRAINT ck_ledger_value_bytes CHECK (value_bytes >= 0)
)
"""

# Deleting an interaction looks for its ledger rows.
_LEDGER_INTERACTION = """
CREATE INDEX ix_ledger_interaction_pk ON ledger (interaction_pk) WHERE interaction_pk IS NOT NULL
"""

_LEDGER_DEAD_LETTERS = "CREATE INDEX ix_ledger_dead_letters ON ledger (settled_at) WHERE outcome = 'dead_lettered'"

_PARTITION_OFFSETS = """
CREATE TABLE partition_offsets (
    topic text NOT NULL,
    partition integer NOT NULL,
    next_offset bigint NOT NULL,
    end_offset bigint,
    generation integer NOT NULL DEFAULT -1,
    owner text NOT NULL DEFAULT '',
    last_broker_time timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_partition_offsets PRIMARY KEY (topic, partition),
    CONSTRAINT ck_partition_offsets_next_offset CHECK (next_offset >= 0)
)
"""

# One row per sentence of each current answer and scorer. A character span counts code points, as substr does.
_V_SENTENCES = """
CREATE VIEW v_sentences AS
SELECT
    coalesce(i.occurred_at, i.received_at, i.stored_at) AS time,
    i.app,
    i.interaction_id,
    i.revision,
    i.answer,
    s.sentence_index,
    s.start_char,
    s.end_char,
    substr(i.answer, s.start_char + 1, s.end_char - s.start_char) AS text,
    s.kind,
    s.gap,
    s.jsd_no_context,
    s.surprisal,
    s.n_tokens,
    s.flagged,
    s.skip_reason,
    p.passage_id AS supporting_passage_id,
    s.supporting_passage AS supporting_passage_position,
    s.supporting_drop,
    CASE
        WHEN s.supporting_chunk IS NOT NULL THEN 'supported'
        WHEN s.gap IS NULL THEN 'not_wanted'
        WHEN v.attributed_at IS NOT NULL THEN 'none_reacts'
        WHEN j.state = 'failed' THEN 'failed'
        WHEN j.state IS NOT NULL THEN 'waiting'
        ELSE 'not_wanted'
    END AS attribution,
    coalesce(t.app, 'default') || '/' || t.version AS threshold_version,
    c.label AS scorer,
    v.scorer_id,
    i.id AS interaction_pk
FROM sentences s
JOIN verdicts v ON v.id = s.verdict_id
JOIN interactions i ON i.id = v.interaction_pk
JOIN scorers c ON c.id = v.scorer_id
LEFT JOIN thresholds t ON t.id = v.threshold_id
LEFT JOIN passages p ON p.interaction_pk = i.id AND p.position = s.supporting_passage
LEFT JOIN attribution_jobs j ON j.verdict_id = v.id
WHERE i.is_current
"""

_V_FLAGGED_SENTENCES = """
CREATE VIEW v_flagged_sentences AS
SELECT s.*, i.question, p.text AS supporting_passage_text
FROM v_sentences s
JOIN interactions i ON i.id = s.interaction_pk
LEFT JOIN passages p ON p.interaction_pk = s.interaction_pk AND p.position = s.supporting_passage_position
WHERE s.flagged
"""

# One row per current answer and scorer.
_V_INTERACTIONS = """
CREATE VIEW v_interactions AS
SELECT
    coalesce(i.occurred_at, i.received_at, i.stored_at) AS time,
    i.app,
    i.interaction_id,
    i.revision,
    i.question,
    i.answer,
    i.generator_model,
    CASE WHEN v.skip_reason IS NULL THEN 'scored' ELSE 'skipped' END AS outcome,
    v.skip_reason,
    v.n_sentences,
    v.n_scored,
    v.n_flagged,
    v.lowest_gap,
    v.context_tokens,
    v.context_tokens_cut,
    v.context_tokens_cut > 0 AS context_truncated,
    v.answer_tokens,
    v.answer_tokens_cut,
    v.answer_tokens_cut > 0 AS answer_truncated,
    CASE
        WHEN v.attributed_at IS NOT NULL THEN 'done'
        WHEN j.state = 'failed' THEN 'failed'
        WHEN j.state IS NOT NULL THEN 'waiting'
        ELSE 'not_wanted'
    END AS attribution,
    j.attempts AS attribution_attempts,
    j.last_error AS attribution_error,
    coalesce(t.app, 'default') || '/' || t.version AS threshold_version,
    c.label AS scorer,
    v.method,
    i.occurred_at,
    i.received_at,
    i.stored_at,
    v.scored_at,
    v.attributed_at,
    i.adapter,
    i.repairs,
    i.source_topic,
    i.source_partition,
    i.source_offset,
    v.scorer_id,
    i.id AS interaction_pk
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN scorers c ON c.id = v.scorer_id
LEFT JOIN thresholds t ON t.id = v.threshold_id
LEFT JOIN attribution_jobs j ON j.verdict_id = v.id
WHERE i.is_current
"""

# The end offset is the one seen at the last write, so the lag of a partition nobody works on is a lower bound.
_V_INGEST_LAG = """
CREATE VIEW v_ingest_lag AS
SELECT
    updated_at AS time,
    topic,
    partition,
    next_offset,
    end_offset,
    CASE WHEN end_offset IS NOT NULL THEN greatest(end_offset - next_offset, 0) END AS lag,
    last_broker_time,
    extract(epoch FROM now() - updated_at)::double precision AS seconds_since_update,
    owner,
    generation
FROM partition_offsets
"""

_V_DEAD_LETTERS = """
CREATE VIEW v_dead_letters AS
SELECT settled_at AS time, topic, partition, record_offset, reason, detail, value_bytes, broker_time
FROM ledger
WHERE outcome = 'dead_lettered'
"""

_STATEMENTS = (
    _SCORERS,
    _THRESHOLDS,
    _THRESHOLDS_ACTIVE,
    _INTERACTIONS,
    _INTERACTIONS_CURRENT,
    _INTERACTIONS_STORED,
    _PASSAGES,
    _VERDICTS,
    _SENTENCES,
    _CHUNK_ATTRIBUTIONS,
    _ATTRIBUTION_JOBS,
    _ATTRIBUTION_JOBS_CLAIM,
    _ATTRIBUTION_JOBS_OPEN,
    _LEDGER,
    _LEDGER_INTERACTION,
    _LEDGER_DEAD_LETTERS,
    _PARTITION_OFFSETS,
    _V_SENTENCES,
    _V_FLAGGED_SENTENCES,
    _V_INTERACTIONS,
    _V_INGEST_LAG,
    _V_DEAD_LETTERS,
)

_VIEWS = ("v_dead_letters", "v_ingest_lag", "v_interactions", "v_flagged_sentences", "v_sentences")
_TABLES = (
    "partition_offsets",
    "ledger",
    "attribution_jobs",
    "chunk_attributions",
    "sentences",
    "verdicts",
    "passages",
    "interactions",
    "thresholds",
    "scorers",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for view in _VIEWS:
        op.execute(f"DROP VIEW {view}")
    for table in _TABLES:
        op.execute(f"DROP TABLE {table}")
