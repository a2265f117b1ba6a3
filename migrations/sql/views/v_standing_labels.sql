-- The labels that stand: of each judgement the row with the latest time, unless that takes the judgement back.
CREATE OR REPLACE VIEW v_standing_labels AS
SELECT coalesce(l.labelled_at, l.received_at) AS time, l.tool, l.external_id, l.task_id, l.app, l.interaction_id,
    l.revision, l.sentence_index, l.reviewer, l.label, l.detail, l.note, l.received_at
FROM review_labels l
WHERE l.action = 'label' AND NOT EXISTS (
    SELECT FROM review_labels later
    WHERE later.tool = l.tool AND later.external_id = l.external_id
        AND (coalesce(later.labelled_at, later.received_at), later.id) > (coalesce(l.labelled_at, l.received_at), l.id)
);
