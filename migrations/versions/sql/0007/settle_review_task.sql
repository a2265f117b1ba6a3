-- Brings a task to what its labels say, and gives its state. A sentence is settled when enough reviewers have labelled
-- it and their votes agree. Where they do not, the task is disputed and goes out again, each time for one reviewer more:
-- from the second round on the majority holds, and after the third the task is closed even on a tie. The task's row
-- stays locked to the end of the transaction, so that of two reviewers at once the second sees what the first said.
CREATE OR REPLACE FUNCTION settle_review_task(task bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    last_round CONSTANT integer := 3;
    asked review_tasks;
    enough boolean;
    settled boolean;
    contested boolean;
    found text;
BEGIN
    SELECT * INTO asked FROM review_tasks WHERE id = task FOR UPDATE;
    IF asked.id IS NULL OR asked.state = 'withdrawn' THEN
        RETURN asked.state;
    END IF;
    WITH newest AS (
        SELECT DISTINCT ON (l.sentence_index, l.reviewer) l.sentence_index,
            CASE WHEN l.label IN ('unsupported', 'partly') THEN 1 WHEN l.label <> 'cant_tell' THEN 0 END AS bad
        FROM review_labels l
        WHERE (
                l.task_id = asked.task_id
                OR (
                    l.task_id IS NULL AND l.app = asked.app AND l.interaction_id = asked.interaction_id
                    AND coalesce(l.revision, 1) = asked.revision
                    AND asked.id = review_task_of(NULL, l.app, l.interaction_id, l.revision)
                )
            )
            AND l.action = 'label' AND NOT EXISTS (
                SELECT FROM review_labels later
                WHERE later.tool = l.tool AND later.external_id = l.external_id
                    AND (coalesce(later.labelled_at, later.received_at), later.id)
                        > (coalesce(l.labelled_at, l.received_at), l.id)
            )
        ORDER BY l.sentence_index, l.reviewer, coalesce(l.labelled_at, l.received_at) DESC, l.received_at DESC
    ), sentence AS (
        SELECT s.sentence_index, count(n.sentence_index) AS reviewers, count(*) FILTER (WHERE n.bad = 1) AS bad,
            count(*) FILTER (WHERE n.bad = 0) AS good
        FROM review_sentences s LEFT JOIN newest n USING (sentence_index)
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
    ) INTO enough, contested, settled FROM judged;
    found := CASE
        WHEN enough AND settled THEN 'labelled'
        WHEN enough OR (contested AND asked.round > 1) THEN 'disputed'
        ELSE 'open'
    END;
    UPDATE review_tasks SET
        state = found,
        round = round + CASE WHEN enough AND NOT settled THEN 1 ELSE 0 END,
        closed_at = CASE WHEN found = 'labelled' THEN coalesce(closed_at, clock_timestamp()) END
    WHERE id = asked.id;
    IF enough AND NOT settled THEN
        INSERT INTO outbox (task_pk, channel, round)
        SELECT DISTINCT task_pk, channel, asked.round + 1 FROM outbox WHERE task_pk = asked.id
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN found;
END
$$;

REVOKE EXECUTE ON FUNCTION settle_review_task(bigint) FROM PUBLIC;
