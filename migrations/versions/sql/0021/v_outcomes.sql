-- A row is what became of one exchange, or of a message or a trace that gave none. What was collected counts when its trace is closed;
-- labels, deletions and streamed parts are no exchanges. The app is NULL where none is known, as of dead letters.
CREATE OR REPLACE VIEW v_outcomes AS
SELECT l.settled_at AS time, i.app, l.outcome, l.reason, l.topic
FROM ledger l
LEFT JOIN interactions i ON i.id = l.interaction_pk
WHERE l.results IS NULL AND l.outcome IN ('scored', 'skipped', 'dead_lettered')
    AND (l.reason IS NULL OR l.reason NOT IN ('tombstone', 'cdc_delete', 'streamed_part'))
UNION ALL
SELECT l.settled_at, i.app, l.outcome, l.reason, l.topic
FROM ledger_items l
LEFT JOIN interactions i ON i.id = l.interaction_pk
WHERE l.outcome IN ('scored', 'skipped', 'dead_lettered')
    AND (l.reason IS NULL OR l.reason NOT IN ('tombstone', 'cdc_delete', 'streamed_part'))
UNION ALL
SELECT t.finished_at, coalesce(i.app, t.app), t.outcome, t.reason, NULL
FROM traces t
LEFT JOIN LATERAL unnest(t.interaction_pks) AS made (interaction_pk) ON true
LEFT JOIN interactions i ON i.id = made.interaction_pk
WHERE t.state = 'done';
