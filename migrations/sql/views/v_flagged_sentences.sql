CREATE OR REPLACE VIEW v_flagged_sentences AS
SELECT
    s.time, s.app, s.interaction_id, s.revision, s.answer, s.sentence_index, s.start_char, s.end_char, s.text, s.kind,
    s.score, s.gap, s.unsupported_probability, s.jsd_no_context, s.surprisal, s.n_tokens, s.flagged, s.skip_reason,
    s.supporting_passage_id, s.supporting_passage_position, s.supporting_drop, s.contradicting_passage_id,
    s.contradicting_passage_position, s.contradicting_drop, s.context_window, s.attribution, s.threshold_version,
    s.scorer, s.scorer_id, s.interaction_pk,
    (SELECT i.question FROM interactions i WHERE i.id = s.interaction_pk) AS question,
    CASE WHEN s.supporting_passage_position IS NOT NULL THEN (
        SELECT p.text FROM interactions i JOIN passages p ON p.interaction_pk = i.id AND p.stored_at = i.stored_at
        WHERE i.id = s.interaction_pk AND p.position = s.supporting_passage_position
    ) END AS supporting_passage_text,
    s.supporting_passage_positions,
    s.supporting_passage_ids,
    s.correction,
    s.worst_start,
    s.worst_end,
    s.worst_text
FROM v_sentences s
WHERE s.flagged;
