-- What the reviewers of a sentence agree on: what more of them vote for (v_review_votes). Only what was asked about has
-- a selection probability. The span lets another scorer's sentence be found.
CREATE OR REPLACE VIEW v_review_consensus AS
SELECT
    votes.time,
    votes.app,
    votes.interaction_id,
    votes.revision,
    votes.sentence_index,
    votes.bad > votes.good AS unsupported,
    votes.bad,
    votes.good,
    votes.reviewers,
    coalesce(asked.score, scored.score) AS score,
    asked.probability AS selection_probability,
    asked.reason AS selection_reason,
    coalesce(asked.start_char, scored.start_char) AS start_char,
    coalesce(asked.end_char, scored.end_char) AS end_char,
    votes.task_pk,
    votes.interaction_pk,
    coalesce(votes.scorer_id, scored.scorer_id) AS scorer_id,
    CASE WHEN asked.task_pk IS NULL THEN scored.correction ELSE asked.correction END AS correction,
    CASE WHEN asked.task_pk IS NULL THEN scored.terms ELSE asked.terms END AS terms
FROM (
    SELECT
        max(time) AS time, app, interaction_id, revision, sentence_index, task_pk, interaction_pk, scorer_id,
        count(*) FILTER (WHERE unsupported) AS bad,
        count(*) FILTER (WHERE NOT unsupported) AS good,
        count(*) AS reviewers
    FROM v_review_votes
    WHERE place <> 'unknown'
    GROUP BY app, interaction_id, revision, sentence_index, task_pk, interaction_pk, scorer_id
) AS votes
LEFT JOIN review_sentences asked ON asked.task_pk = votes.task_pk AND asked.sentence_index = votes.sentence_index
LEFT JOIN LATERAL (
    SELECT v.scorer_id, s.score, s.start_char, s.end_char, s.correction, s.terms
    FROM verdicts v JOIN sentences s ON s.verdict_id = v.id AND s.scored_at = v.scored_at
    WHERE asked.task_pk IS NULL AND v.interaction_pk = votes.interaction_pk
        AND v.scorer_id = coalesce(votes.scorer_id, v.scorer_id)
        AND s.sentence_index = votes.sentence_index AND s.gap IS NOT NULL
    ORDER BY v.id LIMIT 1
) AS scored ON true
WHERE votes.bad <> votes.good AND coalesce(asked.score, scored.score) IS NOT NULL;
