-- The end offset is the one seen at the last write, so the lag of a partition nobody works on is a lower bound. Partitions
-- that went with a topic that was deleted are not here; what was lost with them is in v_lost_offsets.
CREATE OR REPLACE VIEW v_ingest_lag AS
SELECT
    updated_at AS time,
    topic,
    partition,
    next_offset,
    end_offset,
    CASE WHEN end_offset IS NOT NULL THEN greatest(end_offset - next_offset, 0) END AS lag,
    last_broker_time,
    extract(epoch FROM now() - updated_at)::double precision AS seconds_since_update,
    owner,
    generation
FROM partition_offsets
WHERE vanished_at IS NULL;
