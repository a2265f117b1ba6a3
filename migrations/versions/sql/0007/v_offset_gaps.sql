CREATE OR REPLACE VIEW v_offset_gaps AS
SELECT noticed_at AS time, topic, partition, incarnation, from_offset, to_offset, to_offset - from_offset AS messages,
    reason, owner
FROM offset_gaps;
