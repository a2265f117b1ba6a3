-- Makes the tables of the weeks that are not there yet, and counts them. It runs with its owner's rights, so that a
-- worker needs none on the schema. A week is made apart and attached, because that lets readers of the table go on; two
-- callers at once wait.
CREATE OR REPLACE FUNCTION ensure_weeks(first timestamptz, last timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    parent text;
    week timestamptz := date_trunc('week', first);
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('gasp ensure_weeks'));
    WHILE week <= last LOOP
        FOREACH parent IN ARRAY ARRAY['passages', 'sentences', 'chunk_attributions'] LOOP
            name := parent || '_' || to_char(week, 'IYYY"w"IW');
            IF to_regclass(name) IS NULL THEN
                EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
                EXECUTE format(
                    'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                    parent, name, week, week + interval '7 days'
                );
                made := made + 1;
            END IF;
        END LOOP;
        week := week + interval '7 days';
    END LOOP;
    RETURN made;
END
$$;

REVOKE EXECUTE ON FUNCTION ensure_weeks(timestamptz, timestamptz) FROM PUBLIC;
