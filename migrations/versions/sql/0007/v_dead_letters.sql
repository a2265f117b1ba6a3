CREATE OR REPLACE VIEW v_dead_letters AS
SELECT settled_at AS time, topic, partition, record_offset, reason, detail, value_bytes, broker_time
FROM ledger
WHERE outcome = 'dead_lettered';
