-- The votes by which reviewers agree or not: of each reviewer the newest label of a sentence in a task, with what it
-- says (v_label_votes). Where an answer had several tasks, ``is_last`` is true of the newest among them.
CREATE OR REPLACE VIEW v_review_votes AS
SELECT
    newest.time,
    newest.app,
    newest.interaction_id,
    newest.revision,
    newest.sentence_index,
    newest.reviewer,
    newest.label,
    meaning.unsupported,
    row_number() OVER (
        PARTITION BY newest.app, newest.interaction_id, newest.revision, newest.sentence_index, newest.reviewer
        ORDER BY newest.time DESC, newest.received_at DESC
    ) = 1 AS is_last,
    newest.place,
    newest.task_pk,
    newest.interaction_pk,
    newest.scorer_id
FROM (
    SELECT DISTINCT ON (app, interaction_id, revision, task_pk, sentence_index, reviewer)
        time, received_at, app, interaction_id, revision, sentence_index, reviewer, label, place, task_pk,
        interaction_pk, scorer_id
    FROM v_review_labels
    ORDER BY app, interaction_id, revision, task_pk, sentence_index, reviewer, time DESC, received_at DESC
) AS newest
JOIN v_label_votes meaning ON meaning.label = newest.label;
