-- One row per verdict: every revision under every scorer that judged it. ``is_current`` is true of those that
-- v_interactions shows, the last verdict of a current answer.
CREATE OR REPLACE VIEW v_verdicts AS
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
    v.lowest_score,
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
    coalesce(t.app, '*') || '/' || t.version AS threshold_version,
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
    i.id AS interaction_pk,
    i.is_current AND NOT EXISTS (SELECT FROM verdicts later WHERE later.interaction_pk = v.interaction_pk AND later.id > v.id)
        AS is_current,
    v.id AS verdict_id,
    i.sources,
    i.trace ->> 'system' AS trace_system,
    i.trace ->> 'id' AS trace_id,
    i.trace ->> 'closed_by' AS trace_closed_by,
    v.language,
    v.language_supported
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN scorers c ON c.id = v.scorer_id
LEFT JOIN thresholds t ON t.id = v.threshold_id
LEFT JOIN attribution_jobs j ON j.verdict_id = v.id;
