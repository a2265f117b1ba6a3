-- Drops the weeks of one table that end before a time, and never one that an app's period still covers. One table a
-- call, because a writer holds one of the three while it waits for the next, and a drop of all could deadlock with it.
-- The name of a week is read inside CASE, because the planner may look at every name in the catalogue first.
CREATE OR REPLACE FUNCTION drop_weeks(parent text, before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    week record;
    cutoff timestamptz;
    dropped integer := 0;
BEGIN
    SELECT now() - max(keep_days) * interval '1 day' INTO cutoff FROM retention_periods
    HAVING bool_or(app IS NULL) AND count(*) = count(keep_days);
    IF cutoff IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('gasp ensure_weeks'));
    FOR week IN
        SELECT c.oid::regclass AS name
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE parent IN ('passages', 'sentences', 'chunk_attributions')
            AND i.inhparent = to_regclass(parent)
            AND CASE WHEN c.relname ~ '_[0-9]{4}w[0-9]{2}$' THEN to_date(right(c.relname, 7), 'IYYY"w"IW') + 7 END
                <= least(before, cutoff)
    LOOP
        EXECUTE format('DROP TABLE %s', week.name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;

REVOKE EXECUTE ON FUNCTION drop_weeks(text, timestamptz) FROM PUBLIC;
