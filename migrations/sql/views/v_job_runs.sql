CREATE OR REPLACE VIEW v_job_runs AS
SELECT scheduled_for AS time, job, outcome, detail, started_at, finished_at,
    extract(epoch FROM finished_at - started_at)::double precision AS seconds, owner
FROM job_runs;
