-- A row is a passage at its rank on a day: how many attributed answers had it there, and how many of their sentences
-- rest on it. The bulk is looked up from the interaction, as in v_sentences.
CREATE OR REPLACE VIEW v_chunk_usage AS
SELECT
    date_bin('1 day', coalesce(i.occurred_at, i.received_at, i.stored_at), to_timestamp(0)) AS time,
    i.app,
    c.label AS scorer,
    used.passage_id,
    used.position AS passage_position,
    count(*) AS answers,
    count(*) FILTER (WHERE used.supported > 0) AS answers_supported,
    sum(used.supported)::bigint AS sentences_supported,
    sum(used.contradicted)::bigint AS sentences_contradicted,
    used.scorer_id
FROM interactions i
CROSS JOIN LATERAL (
    SELECT v.scorer_id, p.passage_id, p.position, found.supported, found.contradicted
    FROM verdicts v
    JOIN passages p ON p.interaction_pk = v.interaction_pk AND p.stored_at = i.stored_at
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (
                WHERE s.supporting_passage = p.position OR p.position = ANY (s.supporting_passages)
            ) AS supported,
            count(*) FILTER (WHERE s.contradicting_passage = p.position) AS contradicted
        FROM sentences s WHERE s.verdict_id = v.id AND s.scored_at = v.scored_at
    ) AS found
    WHERE v.interaction_pk = i.id AND v.attributed_at IS NOT NULL
        AND NOT EXISTS (SELECT FROM verdicts later WHERE later.interaction_pk = v.interaction_pk AND later.id > v.id)
    OFFSET 0
) AS used
JOIN scorers c ON c.id = used.scorer_id
WHERE i.is_current
GROUP BY 1, i.app, c.label, used.passage_id, used.position, used.scorer_id;
