-- The old name of refresh_review_task, which workers of release 0.1.0 call; it goes with release 0.3.0.
CREATE OR REPLACE FUNCTION settle_review_task(task bigint) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT refresh_review_task(task)
$$;

REVOKE EXECUTE ON FUNCTION settle_review_task(bigint) FROM PUBLIC;
