"""Delivery: who holds a partition and which topic it was, gaps, scheduled runs, re-scoring, and tables by week.

Passages, sentences and chunk attributions are the bulk of the data. They are partitioned by the time at which they were
stored, a week (Monday, UTC) each, so that retention can drop a week as a whole. Their rows carry the time of the
interaction or verdict that they belong to, and a join on both finds its week at once.
"""

from __future__ import annotations

from importlib import import_module

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A topic that is deleted and created again has another id; its offsets begin anew, and so does the ledger's count.
_INCARNATIONS = """
ALTER TABLE partition_offsets
    ADD COLUMN incarnation integer NOT NULL DEFAULT 0,
    ADD COLUMN topic_id text,
    ADD CONSTRAINT ck_partition_offsets_incarnation CHECK (incarnation >= 0);
ALTER TABLE ledger
    ADD COLUMN incarnation integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT ck_ledger_incarnation CHECK (incarnation >= 0),
    DROP CONSTRAINT pk_ledger,
    ADD CONSTRAINT pk_ledger PRIMARY KEY (topic, partition, incarnation, record_offset)
"""

_OFFSET_GAPS = """
CREATE TABLE offset_gaps (
    id bigint GENERATED ALWAYS AS IDENTITY,
    topic text NOT NULL,
    partition integer NOT NULL,
    incarnation integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset bigint NOT NULL,
    reason text NOT NULL,
    owner text NOT NULL,
    noticed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_offset_gaps PRIMARY KEY (id),
    CONSTRAINT ck_offset_gaps_reason CHECK (reason IN ('retention', 'topic_recreated')),
    CONSTRAINT ck_offset_gaps_span CHECK (0 <= from_offset AND from_offset <= to_offset)
)
"""

_JOB_RUNS = """
CREATE TABLE job_runs (
    job text NOT NULL,
    scheduled_for timestamptz NOT NULL,
    owner text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    outcome text NOT NULL DEFAULT 'running',
    detail text,
    CONSTRAINT pk_job_runs PRIMARY KEY (job, scheduled_for),
    CONSTRAINT ck_job_runs_outcome CHECK (outcome IN ('running', 'done', 'failed')),
    CONSTRAINT ck_job_runs_finished CHECK ((outcome = 'running') = (finished_at IS NULL))
)
"""

# The app NULL means every app without a row of its own, a period of NULL means for ever. Without a row nothing is ever
# deleted.
_RETENTION_PERIODS = """
CREATE TABLE retention_periods (
    id integer GENERATED ALWAYS AS IDENTITY,
    app text,
    keep_days integer,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_retention_periods PRIMARY KEY (id),
    CONSTRAINT uq_retention_periods_app UNIQUE NULLS NOT DISTINCT (app),
    CONSTRAINT ck_retention_periods_app CHECK (app <> ''),
    CONSTRAINT ck_retention_periods_keep_days CHECK (keep_days >= 1)
)
"""

_RESCORE_JOBS = """
CREATE TABLE rescore_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    interaction_pk bigint NOT NULL,
    scorer_id integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    attempts integer NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_rescore_jobs PRIMARY KEY (id),
    CONSTRAINT uq_rescore_jobs_interaction_pk_scorer_id UNIQUE (interaction_pk, scorer_id),
    CONSTRAINT fk_rescore_jobs_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE CASCADE,
    CONSTRAINT fk_rescore_jobs_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT ck_rescore_jobs_state CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT ck_rescore_jobs_attempts CHECK (attempts >= 0),
    CONSTRAINT ck_rescore_jobs_lease
        CHECK (num_nulls(lease_owner, leased_until) = CASE WHEN state = 'running' THEN 0 ELSE 2 END),
    CONSTRAINT ck_rescore_jobs_finished CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL))
);
CREATE INDEX ix_rescore_jobs_claim ON rescore_jobs (scorer_id, id) WHERE state = 'waiting';
CREATE INDEX ix_rescore_jobs_open ON rescore_jobs (state) WHERE state <> 'done'
"""

# A job is claimed by workers of its verdict's scorer alone.
_ATTRIBUTION_JOBS_SCORER = """
ALTER TABLE attribution_jobs ADD COLUMN scorer_id integer;
UPDATE attribution_jobs SET scorer_id = v.scorer_id FROM verdicts v WHERE v.id = attribution_jobs.verdict_id;
ALTER TABLE attribution_jobs
    ALTER COLUMN scorer_id SET NOT NULL,
    ADD CONSTRAINT fk_attribution_jobs_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id);
DROP INDEX ix_attribution_jobs_claim;
CREATE INDEX ix_attribution_jobs_claim ON attribution_jobs (scorer_id, priority, id) WHERE state = 'waiting'
"""

# The views are read by time, of one app or of all; retention finds what it deletes from the books.
_INDEXES = """
CREATE INDEX ix_interactions_app_time ON interactions (app, (coalesce(occurred_at, received_at, stored_at)));
CREATE INDEX ix_interactions_time ON interactions ((coalesce(occurred_at, received_at, stored_at)));
CREATE INDEX ix_ledger_settled_at ON ledger USING brin (settled_at)
"""

# The references of the partitioned tables include the time, so that deleting an interaction looks into one week only.
_TIMED_KEYS = """
ALTER TABLE interactions ADD CONSTRAINT uq_interactions_id_stored_at UNIQUE (id, stored_at);
ALTER TABLE verdicts ADD CONSTRAINT uq_verdicts_id_scored_at UNIQUE (id, scored_at)
"""

_PARTITIONED = ("passages", "sentences", "chunk_attributions")

# By its parent's column: the time by which a row's week is found.
_PASSAGES = """
CREATE TABLE passages (
    interaction_pk bigint NOT NULL,
    position integer NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    passage_id text NOT NULL,
    text text NOT NULL,
    score double precision,
    metadata jsonb NOT NULL,
    CONSTRAINT pk_passages PRIMARY KEY (interaction_pk, position, stored_at),
    CONSTRAINT fk_passages_interaction_pk_interactions
        FOREIGN KEY (interaction_pk, stored_at) REFERENCES interactions (id, stored_at) ON DELETE CASCADE,
    CONSTRAINT ck_passages_position CHECK (position >= 0),
    CONSTRAINT ck_passages_score_finite CHECK (abs(score) < 'Infinity')
) PARTITION BY RANGE (stored_at)
"""

_SENTENCES = """
CREATE TABLE sentences (
    verdict_id bigint NOT NULL,
    sentence_index integer NOT NULL,
    scored_at timestamptz NOT NULL DEFAULT now(),
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
    context_window integer,
    contradicting_chunk integer,
    contradicting_passage integer,
    contradicting_drop double precision,
    CONSTRAINT pk_sentences PRIMARY KEY (verdict_id, sentence_index, scored_at),
    CONSTRAINT fk_sentences_verdict_id_verdicts
        FOREIGN KEY (verdict_id, scored_at) REFERENCES verdicts (id, scored_at) ON DELETE CASCADE,
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
    CONSTRAINT ck_sentences_supporting_drop_finite CHECK (abs(supporting_drop) < 'Infinity'),
    CONSTRAINT ck_sentences_context_window CHECK (context_window >= 0),
    CONSTRAINT ck_sentences_contradicting
        CHECK (num_nulls(contradicting_chunk, contradicting_passage, contradicting_drop) IN (0, 3)),
    CONSTRAINT ck_sentences_contradicting_drop_finite CHECK (abs(contradicting_drop) < 'Infinity')
) PARTITION BY RANGE (scored_at)
"""

_CHUNK_ATTRIBUTIONS = """
CREATE TABLE chunk_attributions (
    verdict_id bigint NOT NULL,
    sentence_index integer NOT NULL,
    chunk_index integer NOT NULL,
    scored_at timestamptz NOT NULL,
    passage_position integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    chunk_group integer NOT NULL,
    drop double precision NOT NULL,
    jsd double precision NOT NULL,
    CONSTRAINT pk_chunk_attributions PRIMARY KEY (verdict_id, sentence_index, chunk_index, scored_at),
    CONSTRAINT fk_chunk_attributions_verdict_id_verdicts
        FOREIGN KEY (verdict_id, scored_at) REFERENCES verdicts (id, scored_at) ON DELETE CASCADE,
    CONSTRAINT ck_chunk_attributions_index CHECK (chunk_index >= 0 AND passage_position >= 0),
    CONSTRAINT ck_chunk_attributions_span CHECK (0 <= start_char AND start_char <= end_char),
    CONSTRAINT ck_chunk_attributions_drop_finite CHECK (abs(drop) < 'Infinity'),
    CONSTRAINT ck_chunk_attributions_jsd_finite CHECK (0 <= jsd AND jsd <= 0.6932)
) PARTITION BY RANGE (scored_at)
"""

# Both functions run with their owner's rights, so that a worker needs none on the schema; who may call them is granted.
# A week is made apart and attached, because that lets readers of the table go on; two callers at once wait.
_ENSURE_WEEKS = """
CREATE FUNCTION ensure_weeks(first timestamptz, last timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    parent text;
    week timestamptz := date_trunc('week', first);
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('gasp ensure_weeks'));
    WHILE week <= last LOOP
        FOREACH parent IN ARRAY ARRAY['passages', 'sentences', 'chunk_attributions'] LOOP
            name := parent || '_' || to_char(week, 'IYYY"w"IW');
            IF to_regclass(name) IS NULL THEN
                EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
                EXECUTE format(
                    'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                    parent, name, week, week + interval '7 days'
                );
                made := made + 1;
            END IF;
        END LOOP;
        week := week + interval '7 days';
    END LOOP;
    RETURN made;
END
$$
"""

# Drops the weeks of one table that end before a time, and never one that an app's period still covers. One table a
# call, because a writer holds one of the three while it waits for the next, and a drop of all could deadlock with it.
# The name of a week is read inside CASE, because the planner may look at every name in the catalogue first.
_DROP_WEEKS = """
CREATE FUNCTION drop_weeks(parent text, before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    week record;
    cutoff timestamptz;
    dropped integer := 0;
BEGIN
    SELECT now() - max(keep_days) * interval '1 day' INTO cutoff FROM retention_periods
    HAVING bool_or(app IS NULL) AND count(*) = count(keep_days);
    IF cutoff IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('gasp ensure_weeks'));
    FOR week IN
        SELECT c.oid::regclass AS name
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE parent IN ('passages', 'sentences', 'chunk_attributions')
            AND i.inhparent = to_regclass(parent)
            AND CASE WHEN c.relname ~ '_[0-9]{4}w[0-9]{2}$' THEN to_date(right(c.relname, 7), 'IYYY"w"IW') + 7 END
                <= least(before, cutoff)
    LOOP
        EXECUTE format('DROP TABLE %s', week.name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$
"""

_FOUR_WEEKS_AHEAD = "SELECT ensure_weeks(now(), now() + interval '28 days')"

_WEEKS_OF_THE_DATA = """
SELECT ensure_weeks(first, now()) FROM (
    SELECT least((SELECT min(stored_at) FROM interactions), (SELECT min(scored_at) FROM verdicts)) AS first
) AS data WHERE first IS NOT NULL
"""

_COPIES = (
    """
    INSERT INTO passages (interaction_pk, position, stored_at, passage_id, text, score, metadata)
    SELECT p.interaction_pk, p.position, i.stored_at, p.passage_id, p.text, p.score, p.metadata
    FROM old_passages p JOIN interactions i ON i.id = p.interaction_pk
    """,
    """
    INSERT INTO sentences (verdict_id, sentence_index, scored_at, start_char, end_char, kind, n_tokens, gap,
        jsd_no_context, surprisal, skip_reason, flagged, supporting_chunk, supporting_passage, supporting_drop,
        context_window, contradicting_chunk, contradicting_passage, contradicting_drop)
    SELECT s.verdict_id, s.sentence_index, v.scored_at, s.start_char, s.end_char, s.kind, s.n_tokens, s.gap,
        s.jsd_no_context, s.surprisal, s.skip_reason, s.flagged, s.supporting_chunk, s.supporting_passage,
        s.supporting_drop, s.context_window, s.contradicting_chunk, s.contradicting_passage, s.contradicting_drop
    FROM old_sentences s JOIN verdicts v ON v.id = s.verdict_id
    """,
    """
    INSERT INTO chunk_attributions (verdict_id, sentence_index, chunk_index, scored_at, passage_position, start_char,
        end_char, chunk_group, drop, jsd)
    SELECT c.verdict_id, c.sentence_index, c.chunk_index, v.scored_at, c.passage_position, c.start_char, c.end_char,
        c.chunk_group, c.drop, c.jsd
    FROM old_chunk_attributions c JOIN verdicts v ON v.id = c.verdict_id
    """,
)

_NO_VIEWS = "DROP VIEW v_flagged_sentences, v_sentences"

# One row per sentence of each current answer and scorer. A character span counts code points, as substr does.
# The bulk is looked up from the interaction, which OFFSET 0 and subqueries see to: PostgreSQL knows neither how many
# weeks it will skip nor how many rows a join by two columns finds, and would rather read every week from end to end.
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
    CASE WHEN s.supporting_passage IS NOT NULL THEN (
        SELECT p.passage_id FROM passages p
        WHERE p.interaction_pk = i.id AND p.position = s.supporting_passage AND p.stored_at = i.stored_at
    ) END AS supporting_passage_id,
    s.supporting_passage AS supporting_passage_position,
    s.supporting_drop,
    CASE WHEN s.contradicting_passage IS NOT NULL THEN (
        SELECT p.passage_id FROM passages p
        WHERE p.interaction_pk = i.id AND p.position = s.contradicting_passage AND p.stored_at = i.stored_at
    ) END AS contradicting_passage_id,
    s.contradicting_passage AS contradicting_passage_position,
    s.contradicting_drop,
    s.context_window,
    CASE
        WHEN s.supporting_chunk IS NOT NULL THEN 'supported'
        WHEN s.gap IS NULL THEN 'not_wanted'
        WHEN s.attributed_at IS NOT NULL THEN 'none_reacts'
        ELSE coalesce((
            SELECT CASE j.state WHEN 'failed' THEN 'failed' ELSE 'waiting' END
            FROM attribution_jobs j WHERE j.verdict_id = s.verdict_id
        ), 'not_wanted')
    END AS attribution,
    coalesce(t.app, 'default') || '/' || t.version AS threshold_version,
    c.label AS scorer,
    s.scorer_id,
    i.id AS interaction_pk
FROM interactions i
CROSS JOIN LATERAL (
    SELECT v.scorer_id, v.threshold_id, v.attributed_at, found.*
    FROM verdicts v JOIN sentences found ON found.verdict_id = v.id AND found.scored_at = v.scored_at
    WHERE v.interaction_pk = i.id
    OFFSET 0
) AS s
JOIN scorers c ON c.id = s.scorer_id
LEFT JOIN thresholds t ON t.id = s.threshold_id
WHERE i.is_current
"""

_V_FLAGGED_SENTENCES = """
CREATE VIEW v_flagged_sentences AS
SELECT
    s.*,
    (SELECT i.question FROM interactions i WHERE i.id = s.interaction_pk) AS question,
    CASE WHEN s.supporting_passage_position IS NOT NULL THEN (
        SELECT p.text FROM interactions i JOIN passages p ON p.interaction_pk = i.id AND p.stored_at = i.stored_at
        WHERE i.id = s.interaction_pk AND p.position = s.supporting_passage_position
    ) END AS supporting_passage_text
FROM v_sentences s
WHERE s.flagged
"""

_V_OFFSET_GAPS = """
CREATE VIEW v_offset_gaps AS
SELECT noticed_at AS time, topic, partition, incarnation, from_offset, to_offset, to_offset - from_offset AS messages,
    reason, owner
FROM offset_gaps
"""

_V_JOB_RUNS = """
CREATE VIEW v_job_runs AS
SELECT scheduled_for AS time, job, outcome, detail, started_at, finished_at,
    extract(epoch FROM finished_at - started_at)::double precision AS seconds, owner
FROM job_runs
"""

_PLAIN_AGAIN = """
CREATE TABLE passages (LIKE old_passages INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO passages SELECT * FROM old_passages;
DROP TABLE old_passages;
ALTER TABLE passages
    DROP COLUMN stored_at,
    ADD CONSTRAINT pk_passages PRIMARY KEY (interaction_pk, position),
    ADD CONSTRAINT fk_passages_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE CASCADE;
CREATE TABLE sentences (LIKE old_sentences INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO sentences SELECT * FROM old_sentences;
DROP TABLE old_sentences;
ALTER TABLE sentences
    DROP COLUMN scored_at,
    ADD CONSTRAINT pk_sentences PRIMARY KEY (verdict_id, sentence_index),
    ADD CONSTRAINT fk_sentences_verdict_id_verdicts FOREIGN KEY (verdict_id) REFERENCES verdicts (id) ON DELETE CASCADE;
CREATE TABLE chunk_attributions (LIKE old_chunk_attributions INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO chunk_attributions SELECT * FROM old_chunk_attributions;
DROP TABLE old_chunk_attributions;
ALTER TABLE chunk_attributions
    DROP COLUMN scored_at,
    ADD CONSTRAINT pk_chunk_attributions PRIMARY KEY (verdict_id, sentence_index, chunk_index),
    ADD CONSTRAINT fk_chunk_attributions_verdict_id_sentences FOREIGN KEY (verdict_id, sentence_index)
        REFERENCES sentences (verdict_id, sentence_index) ON DELETE CASCADE
"""

# The ledger can hold one incarnation of a topic only; the newest is kept.
_TAKEN_BACK = """
DROP VIEW v_job_runs, v_offset_gaps;
DROP FUNCTION drop_weeks, ensure_weeks;
DROP TABLE rescore_jobs, retention_periods, job_runs, offset_gaps;
DROP INDEX ix_ledger_settled_at, ix_interactions_time, ix_interactions_app_time, ix_attribution_jobs_claim;
ALTER TABLE attribution_jobs DROP COLUMN scorer_id;
CREATE INDEX ix_attribution_jobs_claim ON attribution_jobs (priority, id) WHERE state = 'waiting';
DELETE FROM ledger USING partition_offsets newest
WHERE newest.topic = ledger.topic AND newest.partition = ledger.partition
    AND newest.incarnation <> ledger.incarnation;
ALTER TABLE ledger
    DROP CONSTRAINT pk_ledger,
    DROP COLUMN incarnation,
    ADD CONSTRAINT pk_ledger PRIMARY KEY (topic, partition, record_offset);
ALTER TABLE partition_offsets DROP COLUMN incarnation, DROP COLUMN topic_id;
ALTER TABLE interactions DROP CONSTRAINT uq_interactions_id_stored_at;
ALTER TABLE verdicts DROP CONSTRAINT uq_verdicts_id_scored_at
"""


def upgrade() -> None:
    for statement in (_INCARNATIONS, _OFFSET_GAPS, _JOB_RUNS, _RETENTION_PERIODS, _RESCORE_JOBS):
        op.execute(statement)
    for statement in (_ATTRIBUTION_JOBS_SCORER, _INDEXES, _NO_VIEWS):
        op.execute(statement)
    for table in _PARTITIONED:
        _set_aside(table)
    for statement in (_TIMED_KEYS, _PASSAGES, _SENTENCES, _CHUNK_ATTRIBUTIONS):
        op.execute(statement)
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for function in (_ENSURE_WEEKS, _DROP_WEEKS):
        op.execute(function.replace("{schema}", schema))
    op.execute("REVOKE EXECUTE ON FUNCTION ensure_weeks, drop_weeks FROM PUBLIC")
    for statement in (_FOUR_WEEKS_AHEAD, _WEEKS_OF_THE_DATA, *_COPIES):
        op.execute(statement)
    for table in reversed(_PARTITIONED):
        op.execute(f"DROP TABLE old_{table}")
    for view in (_V_SENTENCES, _V_FLAGGED_SENTENCES, _V_OFFSET_GAPS, _V_JOB_RUNS):
        op.execute(view)


def downgrade() -> None:
    op.execute(_NO_VIEWS)
    for table in _PARTITIONED:
        _set_aside(table)
    op.execute(_PLAIN_AGAIN)
    op.execute(_TAKEN_BACK)
    before = import_module("migrations.versions.0002_windows_and_contradictions")
    for name in ("_V_SENTENCES", "_V_FLAGGED_SENTENCES"):
        op.execute(getattr(before, name))


def _set_aside(table: str) -> None:
    """Rename a table, and the index whose name its successor takes."""
    op.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    op.execute(f"ALTER TABLE old_{table} RENAME CONSTRAINT pk_{table} TO old_pk_{table}")
