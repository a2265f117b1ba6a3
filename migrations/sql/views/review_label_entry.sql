-- Labels by plain SQL. What is left out is filled in; a time of one's own lets a correction be told from a repeat.
CREATE OR REPLACE VIEW review_label_entry AS
SELECT task_id, app, interaction_id, revision, sentence_index, label, detail, note, reviewer, external_id, labelled_at,
    action
FROM review_labels WHERE source = 'sql';

CREATE OR REPLACE TRIGGER enter_review_label INSTEAD OF INSERT ON review_label_entry
FOR EACH ROW EXECUTE FUNCTION enter_review_label();
