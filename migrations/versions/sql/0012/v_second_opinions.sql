-- A row is an opinion on a sentence of a current answer in its last verdict. ``agrees`` is NULL where the verifier cannot tell.
CREATE OR REPLACE VIEW v_second_opinions AS
SELECT
    coalesce(i.occurred_at, i.received_at, i.stored_at) AS time,
    i.app,
    i.interaction_id,
    i.revision,
    s.sentence_index,
    s.score,
    s.gap,
    s.flagged,
    o.p_unsupported,
    o.label,
    o.verifier,
    CASE WHEN o.label <> 'cant_tell' THEN s.flagged = (o.label <> 'supported') END AS agrees,
    c.label AS scorer,
    v.scorer_id
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN second_opinions o ON o.verdict_id = v.id
JOIN sentences s
    ON s.verdict_id = o.verdict_id AND s.sentence_index = o.sentence_index AND s.scored_at = o.scored_at
JOIN scorers c ON c.id = v.scorer_id
WHERE i.is_current AND o.state = 'done'
    AND NOT EXISTS (SELECT FROM verdicts later WHERE later.interaction_pk = v.interaction_pk AND later.id > v.id);
