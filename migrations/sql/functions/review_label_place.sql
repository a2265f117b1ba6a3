-- Whether a label can be about this sentence: 'early' has neither answer nor task yet, 'unknown_sentence' has, but no
-- such sentence, or one without a score.
CREATE OR REPLACE FUNCTION review_label_place(
    named uuid, of_app text, of_interaction text, of_revision integer, of_sentence integer
) RETURNS text
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    task review_tasks;
    answer record;
BEGIN
    SELECT * INTO task FROM review_tasks WHERE id = review_task_of(named, of_app, of_interaction, of_revision);
    SELECT id, is_current INTO answer FROM interactions
    WHERE CASE
        WHEN task.id IS NOT NULL THEN id = task.interaction_pk
        ELSE app = of_app AND interaction_id = of_interaction AND revision = coalesce(of_revision, 1)
    END;
    IF task.id IS NULL AND answer.id IS NULL THEN
        RETURN 'early';
    END IF;
    IF NOT EXISTS (SELECT FROM review_sentences WHERE task_pk = task.id AND sentence_index = of_sentence)
        AND NOT EXISTS (
            SELECT FROM verdicts v JOIN sentences s ON s.verdict_id = v.id AND s.scored_at = v.scored_at
            WHERE v.interaction_pk = answer.id AND s.sentence_index = of_sentence AND s.gap IS NOT NULL
        )
    THEN
        RETURN 'unknown_sentence';
    END IF;
    RETURN CASE WHEN answer.is_current IS FALSE THEN 'superseded' ELSE 'known' END;
END
$$;

REVOKE EXECUTE ON FUNCTION review_label_place(uuid, text, text, integer, integer) FROM PUBLIC;
