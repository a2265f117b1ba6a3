-- The labels that stand, each beside the task and the sentence it is about. A label without a task, or whose task nobody
-- knows, is about the revision it names, else the first, of the answer that was stored when it came, as review_task_at
-- has it. ``place`` says what cannot be used: 'unknown' has no stored answer (yet, or any more), 'superseded' is about an
-- answer that was replaced, and counts all the same.
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
LEFT JOIN review_tasks named ON named.task_id = l.task_id
LEFT JOIN interactions stored ON named.id IS NULL AND stored.app = l.app AND stored.interaction_id = l.interaction_id
    AND stored.revision = coalesce(l.revision, 1)
LEFT JOIN LATERAL (
    SELECT found.id, found.task_id, found.app, found.interaction_id, found.revision, found.scorer_id,
        found.interaction_pk
    FROM review_tasks found
    WHERE found.id = named.id OR (
        named.id IS NULL AND found.app = l.app AND found.interaction_id = l.interaction_id
        AND found.revision = coalesce(l.revision, 1)
        AND (found.interaction_pk IS NOT NULL OR stored.id IS NULL OR l.received_at < stored.stored_at)
    )
    ORDER BY found.interaction_pk IS NOT NULL, found.interaction_pk IS NULL AND found.created_at > l.received_at,
        CASE WHEN found.interaction_pk IS NULL AND found.created_at <= l.received_at THEN -found.id ELSE found.id END
    LIMIT 1
) AS t ON true
LEFT JOIN review_sentences s ON s.task_pk = t.id AND s.sentence_index = l.sentence_index
LEFT JOIN interactions i ON i.id = CASE WHEN t.id IS NULL THEN stored.id ELSE t.interaction_pk END;
