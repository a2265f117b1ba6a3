-- The labels that stand, each beside the task and the sentence it is about. A label without a task is about the
-- revision it names, else the first. ``place`` says what cannot be used: 'unknown' has no stored answer (yet, or any
-- more), 'superseded' is about an answer that was replaced, and counts all the same.
CREATE OR REPLACE VIEW v_review_labels AS
SELECT
    l.time,
    l.tool,
    l.external_id,
    l.reviewer,
    l.label,
    l.detail,
    l.note,
    coalesce(t.app, l.app) AS app,
    coalesce(t.interaction_id, l.interaction_id) AS interaction_id,
    coalesce(t.revision, l.revision, 1) AS revision,
    l.sentence_index,
    t.task_id,
    s.score,
    s.flagged,
    s.probability AS selection_probability,
    s.reason AS selection_reason,
    CASE WHEN i.id IS NULL AND t.id IS NULL THEN 'unknown' WHEN NOT i.is_current THEN 'superseded' ELSE 'known' END
        AS place,
    l.received_at,
    t.id AS task_pk,
    i.id AS interaction_pk,
    t.scorer_id
FROM v_standing_labels l
LEFT JOIN LATERAL (
    SELECT found.id, found.task_id, found.app, found.interaction_id, found.revision, found.scorer_id
    FROM review_tasks found
    WHERE found.task_id = l.task_id OR (
        l.task_id IS NULL AND found.app = l.app AND found.interaction_id = l.interaction_id
        AND found.revision = coalesce(l.revision, 1)
    )
    ORDER BY found.id LIMIT 1
) AS t ON true
LEFT JOIN review_sentences s ON s.task_pk = t.id AND s.sentence_index = l.sentence_index
LEFT JOIN interactions i ON i.app = coalesce(t.app, l.app)
    AND i.interaction_id = coalesce(t.interaction_id, l.interaction_id)
    AND i.revision = coalesce(t.revision, l.revision, 1);
