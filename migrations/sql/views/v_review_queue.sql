-- A row is a task that waits for people.
CREATE OR REPLACE VIEW v_review_queue AS
SELECT
    t.created_at AS time,
    extract(epoch FROM now() - t.created_at)::double precision AS age_s,
    t.app,
    c.label AS scorer,
    t.interaction_id,
    t.revision,
    t.task_id,
    t.reason,
    t.state,
    t.round,
    t.reviewers,
    t.probability,
    t.lowest_score,
    (SELECT count(*) FROM review_sentences s WHERE s.task_pk = t.id) AS sentences_asked,
    (
        SELECT count(*) FROM review_sentences s
        WHERE s.task_pk = t.id AND EXISTS (
            SELECT FROM v_standing_labels l
            WHERE l.sentence_index = s.sentence_index AND (
                l.task_id = t.task_id OR (
                    l.app = t.app AND l.interaction_id = t.interaction_id AND coalesce(l.revision, 1) = t.revision
                    AND NOT EXISTS (SELECT FROM review_tasks named WHERE named.task_id = l.task_id)
                    AND (l.received_at >= t.created_at OR NOT EXISTS (
                        SELECT FROM review_tasks removed
                        WHERE removed.app = l.app AND removed.interaction_id = l.interaction_id
                            AND removed.revision = t.revision AND removed.interaction_pk IS NULL
                    ))
                )
            )
        )
    ) AS sentences_labelled,
    t.scorer_id
FROM review_tasks t
JOIN scorers c ON c.id = t.scorer_id
WHERE t.state IN ('open', 'disputed');
