CREATE OR REPLACE VIEW v_offset_gaps AS
SELECT time, topic, partition, incarnation, from_offset, to_offset, messages, reason, owner
FROM v_lost_offsets;

COMMENT ON VIEW v_offset_gaps IS 'the old name of v_lost_offsets; it goes with release 0.3.0';
