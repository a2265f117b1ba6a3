-- A row is the traces of one app and system that were closed on a day (UTC) in the same way, with the same outcome.
CREATE OR REPLACE VIEW v_traces_1d AS
SELECT
    date_bin('1 day', t.finished_at, to_timestamp(0)) AS time,
    t.app,
    t.system,
    t.closed_by,
    t.outcome,
    t.reason,
    count(*) AS traces,
    sum(cardinality(t.interaction_pks)) AS interactions,
    sum(t.pieces) AS pieces,
    sum(t.late_pieces) AS late_pieces
FROM traces t
WHERE t.state = 'done'
GROUP BY 1, t.app, t.system, t.closed_by, t.outcome, t.reason;
