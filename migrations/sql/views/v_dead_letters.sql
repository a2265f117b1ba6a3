-- A dead letter of a record with several results is a row for each of them that cannot be used.
CREATE OR REPLACE VIEW v_dead_letters AS
SELECT settled_at AS time, topic, partition, record_offset, reason, detail, value_bytes, broker_time, 1 AS item
FROM ledger
WHERE outcome = 'dead_lettered' AND results IS NULL
UNION ALL
SELECT i.settled_at, i.topic, i.partition, i.record_offset, i.reason, i.detail, l.value_bytes, l.broker_time, i.item
FROM ledger_items i
JOIN ledger l USING (topic, partition, incarnation, record_offset)
WHERE i.outcome = 'dead_lettered';
