CREATE OR REPLACE VIEW v_flagged_sentences AS
SELECT
    s.*,
    (SELECT i.question FROM interactions i WHERE i.id = s.interaction_pk) AS question,
    CASE WHEN s.supporting_passage_position IS NOT NULL THEN (
        SELECT p.text FROM interactions i JOIN passages p ON p.interaction_pk = i.id AND p.stored_at = i.stored_at
        WHERE i.id = s.interaction_pk AND p.position = s.supporting_passage_position
    ) END AS supporting_passage_text
FROM v_sentences s
WHERE s.flagged;
