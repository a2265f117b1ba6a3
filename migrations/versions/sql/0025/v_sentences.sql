-- One row per sentence of each current answer in its last verdict. A character span counts code points, as substr does.
-- The bulk is looked up from the interaction, which OFFSET 0 and subqueries see to: PostgreSQL knows neither how many
-- weeks it will skip nor how many rows a join by two columns finds, and would rather read every week from end to end.
CREATE OR REPLACE VIEW v_sentences AS
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
    s.score,
    s.gap,
    s.unsupported_probability,
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
        WHEN s.support_unlocated THEN 'unlocated'
        WHEN s.attributed_at IS NOT NULL THEN 'none_reacts'
        ELSE coalesce((
            SELECT CASE j.state WHEN 'failed' THEN 'failed' ELSE 'waiting' END
            FROM attribution_jobs j WHERE j.verdict_id = s.verdict_id
        ), 'not_wanted')
    END AS attribution,
    coalesce(t.app, '*') || '/' || t.version AS threshold_version,
    c.label AS scorer,
    s.scorer_id,
    i.id AS interaction_pk,
    -- All that stand in for each other. Workers of release 0.1.0 name one.
    coalesce(s.supporting_passages, array_remove(ARRAY[s.supporting_passage], NULL)) AS supporting_passage_positions,
    CASE WHEN s.supporting_passage IS NULL THEN '{}' ELSE ARRAY(
        SELECT p.passage_id FROM passages p
        WHERE p.interaction_pk = i.id AND p.stored_at = i.stored_at
            AND p.position = ANY (coalesce(s.supporting_passages, ARRAY[s.supporting_passage]))
        ORDER BY p.position
    ) END AS supporting_passage_ids,
    -- What reviewers taught: the part of the score that the detector did not give.
    s.correction,
    s.worst_start,
    s.worst_end,
    substr(i.answer, s.worst_start + 1, s.worst_end - s.worst_start) AS worst_text,
    s.language,
    s.language_supported
FROM interactions i
CROSS JOIN LATERAL (
    SELECT v.scorer_id, v.threshold_id, v.attributed_at, v.language, v.language_supported, found.*
    FROM verdicts v JOIN sentences found ON found.verdict_id = v.id AND found.scored_at = v.scored_at
    WHERE v.interaction_pk = i.id
        AND NOT EXISTS (SELECT FROM verdicts later WHERE later.interaction_pk = v.interaction_pk AND later.id > v.id)
    OFFSET 0
) AS s
JOIN scorers c ON c.id = s.scorer_id
LEFT JOIN thresholds t ON t.id = s.threshold_id
WHERE i.is_current;
