-- Least privilege: four roles without a login, of which your logins are made members.
--
--   gasp_worker      what `gasp-worker run`, `status`, `check`, `rescore`, `recalibrate`, `fit-detector` and `thresholds`
--                    need, no more
--   gasp_reviewer    reads the views, and enters labels through review_label_entry
--   gasp_dashboard   reads the views
--   gasp_page        what `gasp-worker review serve` needs, no more
--
-- The owner of the database runs this after `gasp-worker migrate`, again after every upgrade, and again when a login
-- was added:
--
--   gasp-worker migrate --roles-sql | psql --set=ON_ERROR_STOP=1 gasp
--
-- It may be run any number of times and beside workers: everything that these roles have is taken back and given anew
-- in one transaction. What a later revision adds belongs to nobody until the file of that version has been run;
-- ALTER DEFAULT PRIVILEGES would give every new table away before anyone had looked at it.
--
-- Database and schema are taken to be the audit's own: PUBLIC, which is everyone else on the server, loses both.
-- The weeks of a partitioned table need no grant: they are reached through it, and only through it.

BEGIN;

-- Not while a week is made or another run of this file changes the same grants.
SELECT pg_advisory_xact_lock(hashtext('gasp ensure_weeks'));

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['gasp_worker', 'gasp_reviewer', 'gasp_dashboard', 'gasp_page'] LOOP
        IF to_regrole(role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END
$$;

DO $$
DECLARE
    ours text := 'gasp_worker, gasp_reviewer, gasp_dashboard, gasp_page';
    everyone text := 'PUBLIC, ' || ours;
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM %s', current_database(), everyone);
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %s', current_schema(), everyone);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %s', current_schema(), everyone);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM %s', current_schema(), everyone);
    EXECUTE format('REVOKE ALL ON ALL ROUTINES IN SCHEMA %I FROM %s', current_schema(), everyone);
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %s', current_database(), ours);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %s', current_schema(), ours);
END
$$;

-- The worker. What was logged and found is written once: of stored rows it changes only which revision is current, with
-- the newest delivery of its content, and what attribution adds. It deletes what retention deletes; the rows below these go with them.
GRANT SELECT ON schema_revisions, retention_periods, review_policies TO gasp_worker;
-- Workers of release 0.1.0 look here instead; it goes with release 0.3.0.
GRANT SELECT ON alembic_version TO gasp_worker;
GRANT SELECT, INSERT ON scorers TO gasp_worker;
GRANT SELECT, INSERT, UPDATE (is_active, activated_at) ON thresholds TO gasp_worker;
GRANT SELECT, INSERT ON calibration_runs, threshold_activations TO gasp_worker;
GRANT SELECT, INSERT, DELETE, UPDATE (is_current, newest_delivery, sources, trace) ON interactions TO gasp_worker;
GRANT SELECT, INSERT ON passages TO gasp_worker;
GRANT SELECT, INSERT, UPDATE (method, attributed_at) ON verdicts TO gasp_worker;
GRANT SELECT, INSERT, UPDATE (supporting_chunk, supporting_passage, supporting_passages, supporting_drop,
    support_unlocated, contradicting_chunk, contradicting_passage, contradicting_drop) ON sentences TO gasp_worker;
GRANT INSERT ON chunk_attributions TO gasp_worker;
GRANT SELECT, INSERT, DELETE ON ledger, offset_gaps TO gasp_worker;
GRANT SELECT, INSERT ON ledger_items TO gasp_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON traces TO gasp_worker;
GRANT SELECT, INSERT, DELETE, UPDATE (trace_pk) ON trace_pieces TO gasp_worker;
GRANT SELECT, INSERT, UPDATE (trace_pk) ON trace_aliases TO gasp_worker;
GRANT SELECT, INSERT, UPDATE ON partition_offsets, review_paces, outbox, second_opinions, result_exports TO gasp_worker;
GRANT SELECT, INSERT, UPDATE (state, closed_at, closed_because) ON review_tasks TO gasp_worker;
GRANT SELECT, INSERT ON review_sentences TO gasp_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON attribution_jobs, rescore_jobs, job_runs TO gasp_worker;
GRANT SELECT, INSERT ON review_labels TO gasp_worker;
GRANT EXECUTE ON FUNCTION ensure_weeks(timestamptz, timestamptz), drop_weeks(text, timestamptz) TO gasp_worker;
GRANT EXECUTE ON FUNCTION review_task_of(uuid, text, text, integer),
    review_task_at(uuid, text, text, integer, timestamptz), named_uuid(text),
    review_label_place(uuid, text, text, integer, integer), refresh_review_task(bigint) TO gasp_worker;
-- Its old name, for workers of release 0.1.0.
GRANT EXECUTE ON FUNCTION settle_review_task(bigint) TO gasp_worker;

-- The review page shows tasks with their answers, keeps who has which of them open, and adds labels.
GRANT SELECT ON schema_revisions, review_tasks, review_sentences, scorers, thresholds, interactions, verdicts,
    attribution_jobs, passages, sentences, v_standing_labels, v_label_votes, v_review_votes TO gasp_page;
GRANT SELECT, INSERT ON review_labels TO gasp_page;
GRANT SELECT, INSERT, UPDATE, DELETE ON review_leases TO gasp_page;
GRANT EXECUTE ON FUNCTION review_task_of(uuid, text, text, integer),
    review_task_at(uuid, text, text, integer, timestamptz), review_label_place(uuid, text, text, integer, integer),
    refresh_review_task(bigint) TO gasp_page;

-- What people said and agreed on: the worker calibrates by it.
GRANT SELECT ON v_review_consensus, v_review_votes TO gasp_worker, gasp_reviewer, gasp_dashboard;
GRANT SELECT ON v_review_labels TO gasp_worker, gasp_reviewer, gasp_dashboard;
GRANT SELECT ON v_standing_labels, v_label_votes TO gasp_reviewer, gasp_dashboard;

-- Readers. A view reads its tables with the rights of the owner, so that they need none on the tables.
GRANT SELECT ON v_sentences, v_flagged_sentences, v_interactions, v_verdicts, v_ingest_lag, v_dead_letters, v_outcomes, v_lost_offsets,
    v_job_runs
    TO gasp_reviewer, gasp_dashboard;
-- The old name of v_lost_offsets.
GRANT SELECT ON v_offset_gaps TO gasp_reviewer, gasp_dashboard;
GRANT SELECT ON v_reviewer_agreement, v_second_opinions TO gasp_reviewer, gasp_dashboard;
GRANT SELECT ON v_rates_5m, v_rates_1d, v_chunk_usage, v_review_queue, v_threshold_history, v_calibration_runs, v_quality
    TO gasp_reviewer, gasp_dashboard;
GRANT SELECT ON v_traces, v_traces_1d TO gasp_reviewer, gasp_dashboard;

-- A reviewer may label by plain SQL. The view's trigger writes with the rights of the owner, and lets a login speak for
-- the reviewers that reviewer_logins maps to it, which only the owner changes; without any, for that of its own name.
GRANT INSERT ON review_label_entry TO gasp_reviewer;
GRANT SELECT ON reviewer_logins TO gasp_reviewer;

-- A query that runs for long costs the worker its server, and a transaction left open keeps weeks from being dropped.
-- Such settings are not inherited from a role: each login has its own, hence the run after a login was added. A
-- worker brings its own with each connection.
DO $$
DECLARE
    login regrole;
    bound text;
BEGIN
    FOR login IN
        SELECT oid FROM pg_roles
        WHERE rolcanlogin AND NOT rolsuper
            AND (pg_has_role(oid, 'gasp_reviewer', 'USAGE') OR pg_has_role(oid, 'gasp_dashboard', 'USAGE'))
    LOOP
        FOREACH bound IN ARRAY ARRAY[
            'statement_timeout = ''30s''', 'lock_timeout = ''5s''', 'idle_in_transaction_session_timeout = ''30s'''
        ] LOOP
            EXECUTE format('ALTER ROLE %s IN DATABASE %I SET %s', login, current_database(), bound);
        END LOOP;
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'no timeouts for %: whoever made it must set statement_timeout, lock_timeout and '
        'idle_in_transaction_session_timeout', login;
END
$$;

COMMIT;
