-- A row is a trace whose steps lie in several messages. What it waits for is NULL of one that is closed.
CREATE OR REPLACE VIEW v_traces AS
SELECT
    coalesce(t.finished_at, t.last_at) AS time,
    t.app,
    t.system,
    t.trace_id,
    CASE t.state WHEN 'done' THEN 'closed' ELSE 'open' END AS state,
    CASE
        WHEN t.state = 'done' THEN NULL
        WHEN t.closed_by IS NOT NULL OR t.state = 'running' THEN 'nothing'
        WHEN NOT t.has_root THEN 'root'
        WHEN t.is_incomplete THEN 'parents'
        ELSE 'grace'
    END AS waits_for,
    CASE WHEN t.state <> 'done' THEN t.run_after END AS due_at,
    t.closed_by,
    t.outcome,
    t.reason,
    t.detail,
    t.pieces,
    t.steps,
    t.bytes,
    t.late_pieces,
    t.closings,
    t.first_at,
    t.last_at,
    t.last_broker_time,
    t.finished_at,
    t.emptied_at,
    t.attempts,
    cardinality(t.interaction_pks) AS interactions,
    t.id AS trace_pk
FROM traces t;
