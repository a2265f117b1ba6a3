"""Views for dashboards and reports: rates, use of passages, the review queue, thresholds, calibration and quality.

Rates are computed when they are read, so that a message that came late is in the bucket of its own time. The two
indexes are what a condition on a bucket's time is looked up in.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TIME = "coalesce({row}occurred_at, {row}received_at, {row}stored_at)"
# From the epoch on, hence in UTC whatever the zone of the session.
_BUCKET = "date_bin('{width}', {time}, to_timestamp(0))"

_FIVE_MINUTES, _DAY = "00:05:00", "1 day"


def _bucket(width: str, row: str = "") -> str:
    return _BUCKET.format(width=width, time=_TIME.format(row=row))


_INDEXES = f"""
CREATE INDEX ix_interactions_time_5m ON interactions (({_bucket(_FIVE_MINUTES)}));
CREATE INDEX ix_interactions_time_1d ON interactions (({_bucket(_DAY)}))
"""

# A row is the current answers of one bucket, app, scorer and generator. Shares and quantiles are NULL of nothing.
_V_RATES = """
CREATE VIEW {name} AS
SELECT
    {bucket} AS time,
    i.app,
    c.label AS scorer,
    i.generator_model,
    count(*) AS interactions,
    count(*) FILTER (WHERE v.skip_reason IS NULL) AS scored,
    count(v.skip_reason) AS skipped,
    count(*) FILTER (WHERE v.skip_reason = 'no_passages') AS skipped_no_passages,
    sum(v.n_sentences) AS sentences,
    sum(v.n_scored) AS sentences_scored,
    sum(v.n_flagged) AS sentences_flagged,
    sum(v.n_flagged)::double precision / nullif(sum(v.n_scored), 0) AS flagged_share,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY v.lowest_gap) AS lowest_gap_p10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY v.lowest_gap) AS lowest_gap_p50,
    v.scorer_id
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN scorers c ON c.id = v.scorer_id
WHERE i.is_current
GROUP BY 1, i.app, c.label, i.generator_model, v.scorer_id
"""

# A row is a passage at its rank on a day: how many attributed answers had it there, and how many of their sentences
# rest on it. The bulk is looked up from the interaction, as in v_sentences.
_V_CHUNK_USAGE = """
CREATE VIEW v_chunk_usage AS
SELECT
    {bucket} AS time,
    i.app,
    c.label AS scorer,
    used.passage_id,
    used.position AS passage_position,
    count(*) AS answers,
    count(*) FILTER (WHERE used.supported > 0) AS answers_supported,
    sum(used.supported)::bigint AS sentences_supported,
    sum(used.contradicted)::bigint AS sentences_contradicted,
    used.scorer_id
FROM interactions i
CROSS JOIN LATERAL (
    SELECT v.scorer_id, p.passage_id, p.position, found.supported, found.contradicted
    FROM verdicts v
    JOIN passages p ON p.interaction_pk = v.interaction_pk AND p.stored_at = i.stored_at
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE s.supporting_passage = p.position) AS supported,
            count(*) FILTER (WHERE s.contradicting_passage = p.position) AS contradicted
        FROM sentences s WHERE s.verdict_id = v.id AND s.scored_at = v.scored_at
    ) AS found
    WHERE v.interaction_pk = i.id AND v.attributed_at IS NOT NULL
    OFFSET 0
) AS used
JOIN scorers c ON c.id = used.scorer_id
WHERE i.is_current
GROUP BY 1, i.app, c.label, used.passage_id, used.position, used.scorer_id
"""

# A row is a task that waits for people. A label counts if it is the newest of its judgement and was not withdrawn.
_V_REVIEW_QUEUE = """
CREATE VIEW v_review_queue AS
SELECT
    t.created_at AS time,
    extract(epoch FROM now() - t.created_at)::double precision AS age_s,
    t.app,
    c.label AS scorer,
    t.interaction_id,
    t.revision,
    t.task_id,
    t.reason,
    t.state,
    t.round,
    t.reviewers,
    t.probability,
    t.lowest_gap,
    (SELECT count(*) FROM review_sentences s WHERE s.task_pk = t.id) AS sentences_asked,
    (
        SELECT count(*) FROM review_sentences s
        WHERE s.task_pk = t.id AND EXISTS (
            SELECT FROM review_labels l
            WHERE l.sentence_index = s.sentence_index AND l.action = 'label' AND (
                l.task_id = t.task_id OR (
                    l.task_id IS NULL AND l.app = t.app AND l.interaction_id = t.interaction_id
                    AND coalesce(l.revision, 1) = t.revision
                )
            ) AND NOT EXISTS (
                SELECT FROM review_labels newer
                WHERE newer.tool = l.tool AND newer.external_id = l.external_id
                    AND (coalesce(newer.labelled_at, newer.received_at), newer.id)
                        > (coalesce(l.labelled_at, l.received_at), l.id)
            )
        )
    ) AS sentences_labelled,
    t.scorer_id
FROM review_tasks t
JOIN scorers c ON c.id = t.scorer_id
WHERE t.state IN ('open', 'disputed')
"""

# A row is a version coming into force; ``until`` is when the next one of that app and scorer did, or when the app
# went back to the default. The app NULL means every app without a threshold of its own.
_V_THRESHOLD_HISTORY = """
CREATE VIEW v_threshold_history AS
SELECT
    a.activated_at AS time,
    a.until,
    t.app,
    c.label AS scorer,
    coalesce(t.app, 'default') || '/' || t.version AS threshold_version,
    t.flag_below,
    t.attribute_below,
    t.learned_from,
    a.reason,
    a.activated_by,
    t.note,
    t.curve IS NOT NULL AS has_curve,
    t.scorer_id
FROM (
    SELECT
        taken.*,
        lead(taken.activated_at) OVER (
            PARTITION BY version.app, version.scorer_id ORDER BY taken.activated_at, taken.id
        ) AS until
    FROM threshold_activations taken JOIN thresholds version ON version.id = taken.threshold_id
) AS a
JOIN thresholds t ON t.id = a.threshold_id
JOIN scorers c ON c.id = t.scorer_id
WHERE a.reason <> 'withdrawn'
"""

_COUNTS = ("n_labels", "n_unsupported")
_NUMBERS = (
    "effective_n",
    "prior",
    "recall",
    "recall_low",
    "recall_high",
    "precision",
    "precision_low",
    "precision_high",
    "flagged_share",
    "psi",
)
_TYPED = ",\n    ".join(
    [f"(r.numbers ->> '{name}')::double precision::integer AS {name}" for name in _COUNTS]
    + [f"(r.numbers ->> '{name}')::double precision AS \"{name}\"" for name in _NUMBERS]
)

_V_CALIBRATION_RUNS = """
CREATE VIEW v_calibration_runs AS
SELECT
    r.ran_at AS time,
    r.app,
    c.label AS scorer,
    r.trigger,
    r.outcome,
    r.reason,
    coalesce(before.app, 'default') || '/' || before.version AS in_force,
    coalesce(made.app, 'default') || '/' || made.version AS threshold_version,
    before.flag_below AS flag_below_before,
    made.flag_below,
    {typed},
    r.scorer_id,
    r.id AS run_id
FROM calibration_runs r
JOIN scorers c ON c.id = r.scorer_id
JOIN thresholds before ON before.id = r.in_force_id
LEFT JOIN thresholds made ON made.id = r.threshold_id
"""

# A row is what was last known of an app and scorer: precision and recall of the threshold that was in force then, or
# of the one that the run made.
_V_QUALITY = """
CREATE VIEW v_quality AS
SELECT DISTINCT ON (app, scorer_id)
    time,
    app,
    scorer,
    coalesce(threshold_version, in_force) AS threshold_version,
    n_labels,
    effective_n,
    prior,
    recall,
    recall_low,
    recall_high,
    "precision",
    precision_low,
    precision_high,
    flagged_share,
    scorer_id
FROM v_calibration_runs
WHERE recall IS NOT NULL OR "precision" IS NOT NULL
ORDER BY app, scorer_id, time DESC, run_id DESC
"""

_VIEWS = (
    _V_RATES.format(name="v_rates_5m", bucket=_bucket(_FIVE_MINUTES, "i.")),
    _V_RATES.format(name="v_rates_1d", bucket=_bucket(_DAY, "i.")),
    _V_CHUNK_USAGE.format(bucket=_bucket(_DAY, "i.")),
    _V_REVIEW_QUEUE,
    _V_THRESHOLD_HISTORY,
    _V_CALIBRATION_RUNS.format(typed=_TYPED),
    _V_QUALITY,
)


def upgrade() -> None:
    for statement in (_INDEXES, *_VIEWS):
        op.execute(statement)


def downgrade() -> None:
    op.execute(
        "DROP VIEW v_quality, v_calibration_runs, v_threshold_history, v_review_queue, v_chunk_usage, v_rates_1d, "
        "v_rates_5m"
    )
    op.execute("DROP INDEX ix_interactions_time_1d, ix_interactions_time_5m")
