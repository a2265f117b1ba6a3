-- Brings a task to what its labels say, and gives its state. A sentence is decided when enough reviewers have labelled
-- it and their votes (v_label_votes) agree. Where they do not, the task is disputed and goes out again, each time for
-- one reviewer more: from the second round on the majority holds, and after the third the task is closed even on a tie.
-- The task's row stays locked to the end of the transaction, so that of two reviewers at once the second sees what the
-- first said. The newest labels are looked up from the task's own, because v_review_votes would read those of all.
CREATE OR REPLACE FUNCTION refresh_review_task(task bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    last_round CONSTANT integer := 3;
    asked review_tasks;
    enough boolean;
    decided boolean;
    contested boolean;
    found text;
BEGIN
    SELECT * INTO asked FROM review_tasks WHERE id = task FOR UPDATE;
    IF asked.id IS NULL OR asked.state = 'withdrawn' THEN
        RETURN asked.state;
    END IF;
    WITH newest AS (
        SELECT DISTINCT ON (l.sentence_index, l.reviewer) l.sentence_index, l.label
        FROM v_standing_labels l
        WHERE l.task_id = asked.task_id OR (
            l.app = asked.app AND l.interaction_id = asked.interaction_id AND coalesce(l.revision, 1) = asked.revision
            AND asked.id = review_task_at(l.task_id, l.app, l.interaction_id, l.revision, l.received_at)
        )
        ORDER BY l.sentence_index, l.reviewer, l.time DESC, l.received_at DESC
    ), sentence AS (
        SELECT s.sentence_index, count(n.label) AS reviewers, count(*) FILTER (WHERE meaning.unsupported) AS bad,
            count(*) FILTER (WHERE NOT meaning.unsupported) AS good
        FROM review_sentences s LEFT JOIN newest n USING (sentence_index)
        LEFT JOIN v_label_votes meaning ON meaning.label = n.label
        WHERE s.task_pk = asked.id
        GROUP BY s.sentence_index
    ), judged AS (
        SELECT bad > 0 AND good > 0 AS is_contested, bad <> good AS has_majority,
            reviewers >= CASE
                WHEN asked.round > 1 AND bad > 0 AND good > 0 THEN greatest(asked.reviewers, 2) + asked.round - 1
                ELSE asked.reviewers
            END AS has_enough
        FROM sentence
    )
    SELECT bool_and(has_enough), bool_or(is_contested), bool_and(
        NOT is_contested OR (asked.round > 1 AND has_majority) OR asked.round >= last_round
    ) INTO enough, contested, decided FROM judged;
    found := CASE
        WHEN enough AND decided THEN 'labelled'
        WHEN enough OR (contested AND asked.round > 1) THEN 'disputed'
        ELSE 'open'
    END;
    UPDATE review_tasks SET
        state = found,
        round = round + CASE WHEN enough AND NOT decided THEN 1 ELSE 0 END,
        closed_at = CASE WHEN found = 'labelled' THEN coalesce(closed_at, clock_timestamp()) END
    WHERE id = asked.id;
    IF enough AND NOT decided THEN
        INSERT INTO outbox (task_pk, channel, round, event_id)
        SELECT DISTINCT task_pk, channel, asked.round + 1,
            named_uuid(concat(asked.task_id, '/', channel, '/', asked.round + 1))
        FROM outbox WHERE task_pk = asked.id
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN found;
END
$$;

REVOKE EXECUTE ON FUNCTION refresh_review_task(bigint) FROM PUBLIC;
