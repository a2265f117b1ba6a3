-- The task that a label is about which comes now.
CREATE OR REPLACE FUNCTION review_task_of(
    named uuid, of_app text, of_interaction text, of_revision integer
) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT review_task_at(named, of_app, of_interaction, of_revision, clock_timestamp())
$$;

REVOKE EXECUTE ON FUNCTION review_task_of(uuid, text, text, integer) FROM PUBLIC;
