-- The task that a label is about: the one it names, else the first of the answer.
CREATE OR REPLACE FUNCTION review_task_of(
    named uuid, of_app text, of_interaction text, of_revision integer
) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT id FROM review_tasks
    WHERE task_id = named OR (
        named IS NULL AND app = of_app AND interaction_id = of_interaction AND revision = coalesce(of_revision, 1)
    )
    ORDER BY id LIMIT 1
$$;

REVOKE EXECUTE ON FUNCTION review_task_of(uuid, text, text, integer) FROM PUBLIC;
