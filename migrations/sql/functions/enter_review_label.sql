CREATE OR REPLACE FUNCTION enter_review_label() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    word text := regexp_replace(lower(btrim(NEW.label)), '[ -]', '_', 'g');
    place text;
    task bigint;
BEGIN
    NEW.action := coalesce(NEW.action, 'label');
    NEW.reviewer := coalesce(NEW.reviewer, session_user);
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
    END IF;
    place := review_label_place(NEW.task_id, NEW.app, NEW.interaction_id, NEW.revision, NEW.sentence_index);
    IF place = 'unknown_sentence' AND NEW.action = 'label' THEN
        RAISE 'the answer has no sentence of this index that was scored' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO review_labels (tool, external_id, action, label, detail, task_id, app, interaction_id, revision,
        sentence_index, reviewer, note, labelled_at, source)
    VALUES ('sql', NEW.external_id, NEW.action, word, NEW.detail, NEW.task_id, NEW.app, NEW.interaction_id,
        NEW.revision, NEW.sentence_index, NEW.reviewer, NEW.note, NEW.labelled_at, 'sql')
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
