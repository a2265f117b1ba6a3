"""Context read in windows, and the passage that speaks against a sentence."""

from __future__ import annotations

from importlib import import_module

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Verdicts from before were given on one window, or on none.
_COLUMNS = """
ALTER TABLE verdicts
    ADD COLUMN context_windows integer,
    ADD CONSTRAINT ck_verdicts_context_windows CHECK (context_windows >= 0);
UPDATE verdicts SET context_windows = CASE WHEN lowest_gap IS NULL THEN 0 ELSE 1 END;
ALTER TABLE verdicts ALTER COLUMN context_windows SET NOT NULL;
ALTER TABLE sentences
    ADD COLUMN context_window integer,
    ADD COLUMN contradicting_chunk integer,
    ADD COLUMN contradicting_passage integer,
    ADD COLUMN contradicting_drop double precision,
    ADD CONSTRAINT ck_sentences_context_window CHECK (context_window >= 0),
    ADD CONSTRAINT ck_sentences_contradicting
        CHECK (num_nulls(contradicting_chunk, contradicting_passage, contradicting_drop) IN (0, 3)),
    ADD CONSTRAINT ck_sentences_contradicting_drop_finite CHECK (abs(contradicting_drop) < 'Infinity');
UPDATE sentences SET context_window = 0 WHERE gap IS NOT NULL
"""

_NO_COLUMNS = """
ALTER TABLE sentences
    DROP COLUMN context_window,
    DROP COLUMN contradicting_chunk,
    DROP COLUMN contradicting_passage,
    DROP COLUMN contradicting_drop;
ALTER TABLE verdicts DROP COLUMN context_windows
"""

_NO_VIEWS = "DROP VIEW v_interactions, v_flagged_sentences, v_sentences"

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
    against.passage_id AS contradicting_passage_id,
    s.contradicting_passage AS contradicting_passage_position,
    s.contradicting_drop,
    s.context_window,
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
LEFT JOIN passages against ON against.interaction_pk = i.id AND against.position = s.contradicting_passage
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
    v.context_windows,
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


def upgrade() -> None:
    op.execute(_NO_VIEWS)
    op.execute(_COLUMNS)
    for view in (_V_SENTENCES, _V_FLAGGED_SENTENCES, _V_INTERACTIONS):
        op.execute(view)


def downgrade() -> None:
    op.execute(_NO_VIEWS)
    op.execute(_NO_COLUMNS)
    first = import_module("migrations.versions.0001_first_tables")
    for name in ("_V_SENTENCES", "_V_FLAGGED_SENTENCES", "_V_INTERACTIONS"):
        op.execute(getattr(first, name))
