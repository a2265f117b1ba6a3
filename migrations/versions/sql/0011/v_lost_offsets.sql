-- Stretches of offsets that were not read and never can be: retention was quicker, or the topic was deleted. How far a
-- deleted topic went is not known: to_offset and messages are NULL.
CREATE OR REPLACE VIEW v_lost_offsets AS
SELECT noticed_at AS time, topic, partition, incarnation, from_offset, to_offset, to_offset - from_offset AS messages,
    reason, owner
FROM offset_gaps;
