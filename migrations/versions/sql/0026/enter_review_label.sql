-- The owner may enter what it likes. Every other login speaks for its own reviewers, about its own judgements, and dates
-- them between the task and now.
CREATE OR REPLACE FUNCTION enter_review_label() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    word text := regexp_replace(lower(btrim(NEW.label)), '[ -]', '_', 'g');
    place text;
    task bigint;
    -- This function runs as the owner.
    is_owner boolean := pg_has_role(session_user, current_user, 'MEMBER');
    own text[] := ARRAY(SELECT l.reviewer FROM reviewer_logins l WHERE l.login = session_user ORDER BY 1);
BEGIN
    IF own = '{}' THEN
        own := ARRAY[session_user::text];
    END IF;
    NEW.action := coalesce(NEW.action, 'label');
    NEW.reviewer := coalesce(NEW.reviewer, CASE cardinality(own) WHEN 1 THEN own[1] END);
    IF NEW.reviewer IS NULL THEN
        RAISE 'reviewer must be one of those that this login speaks for' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT is_owner AND NEW.reviewer <> ALL (own) THEN
        RAISE 'this login does not speak for this reviewer' USING ERRCODE = 'insufficient_privilege';
    -- An id that is made for another's judgement, below.
    ELSIF NOT is_owner AND NEW.external_id LIKE '%:%' AND NOT starts_with(NEW.external_id, NEW.reviewer || ':') THEN
        RAISE 'an external_id with a colon must begin with the reviewer' USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW.labelled_at := coalesce(NEW.labelled_at, clock_timestamp());
    NEW.external_id := coalesce(NEW.external_id, concat_ws(':', NEW.reviewer,
        coalesce(NEW.task_id::text, concat_ws(':', NEW.app, NEW.interaction_id, coalesce(NEW.revision, 1))),
        NEW.sentence_index));
    IF char_length(NEW.external_id) > 500 THEN
        NEW.external_id := 'md5:' || md5(NEW.external_id);
    END IF;
    IF word IN ('baseless', 'conflict') OR word LIKE 'unsupported:%' THEN
        NEW.detail := coalesce(NEW.detail, regexp_replace(word, '^unsupported: *_*', ''));
        word := 'unsupported';
    END IF;
    NEW.detail := lower(btrim(NEW.detail));
    IF NEW.action NOT IN ('label', 'withdraw') THEN
        RAISE 'action must be label or withdraw' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.sentence_index IS NULL OR NEW.sentence_index < 0 THEN
        RAISE 'sentence_index must be 0 or more' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.task_id IS NULL AND (NEW.app IS NULL OR NEW.interaction_id IS NULL) THEN
        RAISE 'either task_id, or app and interaction_id, must be given' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.action = 'withdraw' AND word IS NOT NULL THEN
        RAISE 'what is withdrawn has no label' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.action = 'label' AND (
        word IS NULL OR word NOT IN ('supported', 'unsupported', 'partly', 'not_a_claim', 'cant_tell')
    ) THEN
        RAISE 'label must be supported, unsupported, partly, not_a_claim or cant_tell'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.detail IS NOT NULL AND (
        word IS DISTINCT FROM 'unsupported' OR NEW.detail NOT IN ('baseless', 'conflict')
    ) THEN
        RAISE 'detail must be baseless or conflict, and goes with unsupported only'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF NEW.labelled_at > clock_timestamp() + interval '1 day' OR NEW.labelled_at < '2015-01-01Z' THEN
        RAISE 'labelled_at must lie between 2015 and tomorrow' USING ERRCODE = 'invalid_parameter_value';
    -- The clocks of two machines are never quite the same.
    ELSIF NEW.labelled_at > clock_timestamp() + interval '5 minutes' THEN
        RAISE 'labelled_at lies in the future' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT is_owner AND NEW.labelled_at < (
        SELECT created_at FROM review_tasks
        WHERE id = review_task_of(NEW.task_id, NEW.app, NEW.interaction_id, NEW.revision)
    ) THEN
        RAISE 'labelled_at lies before the task' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT is_owner THEN
        -- So that of two logins that enter one id at once the second sees whose it is.
        PERFORM pg_advisory_xact_lock(hashtextextended('gasp review label ' || NEW.external_id, 0));
        IF EXISTS (
            SELECT FROM review_labels
            WHERE tool = 'sql' AND external_id = NEW.external_id AND reviewer <> NEW.reviewer
        ) THEN
            RAISE 'this external_id is the judgement of another reviewer' USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    place := review_label_place(NEW.task_id, NEW.app, NEW.interaction_id, NEW.revision, NEW.sentence_index);
    IF place = 'unknown_sentence' AND NEW.action = 'label' THEN
        RAISE 'the answer has no sentence of this index that was scored' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO review_labels (tool, external_id, action, label, detail, task_id, app, interaction_id, revision,
        sentence_index, reviewer, note, labelled_at, source, entered_by)
    VALUES ('sql', NEW.external_id, NEW.action, word, NEW.detail, NEW.task_id, NEW.app, NEW.interaction_id,
        NEW.revision, NEW.sentence_index, NEW.reviewer, NEW.note, NEW.labelled_at, 'sql', session_user)
    ON CONFLICT DO NOTHING;
    FOR task IN
        SELECT DISTINCT review_task_at(task_id, app, interaction_id, revision, received_at) FROM review_labels
        WHERE tool = 'sql' AND external_id = NEW.external_id ORDER BY 1
    LOOP
        PERFORM refresh_review_task(task);
    END LOOP;
    RETURN NEW;
END
$$;

REVOKE EXECUTE ON FUNCTION enter_review_label() FROM PUBLIC;
