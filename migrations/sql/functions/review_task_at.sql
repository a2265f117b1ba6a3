-- The task that a label is about which came at this time: the one it names. One that names none, or one that nobody knows
-- because a backup was restored, is about the answer that was stored then: the first task of that answer if it is there
-- still, else the last that was made before the label. An id may be used again after retention.
CREATE OR REPLACE FUNCTION review_task_at(
    named uuid, of_app text, of_interaction text, of_revision integer, came_at timestamptz
) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT coalesce((SELECT id FROM review_tasks WHERE task_id = named), (
        SELECT found.id
        FROM review_tasks found
        LEFT JOIN interactions stored ON stored.app = of_app AND stored.interaction_id = of_interaction
            AND stored.revision = coalesce(of_revision, 1)
        WHERE found.app = of_app AND found.interaction_id = of_interaction
            AND found.revision = coalesce(of_revision, 1)
            AND (found.interaction_pk IS NOT NULL OR stored.id IS NULL OR came_at < stored.stored_at)
        ORDER BY found.interaction_pk IS NOT NULL, found.interaction_pk IS NULL AND found.created_at > came_at,
            CASE WHEN found.interaction_pk IS NULL AND found.created_at <= came_at THEN -found.id ELSE found.id END
        LIMIT 1
    ))
$$;

REVOKE EXECUTE ON FUNCTION review_task_at(uuid, text, text, integer, timestamptz) FROM PUBLIC;
