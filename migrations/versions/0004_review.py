"""The human loop: review policies and tasks, the outbox, labels, calibration runs, and curves beside the thresholds.

What people said outlives what they said it about: retention takes interactions away, while tasks, the scores they were
chosen by and the labels stay, without a word of text.
"""

from __future__ import annotations

from importlib import import_module

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# The app NULL means every app without a policy of its own. What ``target`` is depends on the objective: a share, the
# price of a miss in reviews, or flagged sentences a day.
_POLICIES = """
CREATE TABLE review_policies (
    id integer GENERATED ALWAYS AS IDENTITY,
    app text,
    daily_sentences integer NOT NULL,
    sampled_share double precision NOT NULL,
    objective text NOT NULL,
    target double precision NOT NULL,
    attribution_share double precision NOT NULL,
    reviewers integer NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_review_policies PRIMARY KEY (id),
    CONSTRAINT uq_review_policies_app UNIQUE NULLS NOT DISTINCT (app),
    CONSTRAINT ck_review_policies_app CHECK (app <> ''),
    CONSTRAINT ck_review_policies_daily_sentences CHECK (daily_sentences >= 0),
    CONSTRAINT ck_review_policies_sampled_share CHECK (sampled_share >= 0 AND sampled_share <= 1),
    CONSTRAINT ck_review_policies_objective CHECK (objective IN ('recall', 'precision', 'cost', 'budget')),
    CONSTRAINT ck_review_policies_target CHECK (
        target > 0 AND target < CASE WHEN objective IN ('recall', 'precision') THEN 1 ELSE 'Infinity'::float8 END
    ),
    CONSTRAINT ck_review_policies_attribution_share CHECK (attribution_share >= 0 AND attribution_share <= 1),
    CONSTRAINT ck_review_policies_reviewers CHECK (reviewers BETWEEN 1 AND 9)
)
"""

# How much there is to choose from on a day, as far as the last week tells.
_PACES = """
CREATE TABLE review_paces (
    app text NOT NULL,
    scorer_id integer NOT NULL,
    expected_flagged double precision NOT NULL,
    expected_sampled double precision NOT NULL,
    spread double precision NOT NULL,
    computed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_review_paces PRIMARY KEY (app, scorer_id),
    CONSTRAINT fk_review_paces_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT ck_review_paces_expected_flagged CHECK (expected_flagged >= 0 AND expected_flagged < 'Infinity'),
    CONSTRAINT ck_review_paces_expected_sampled CHECK (expected_sampled >= 0 AND expected_sampled < 'Infinity'),
    CONSTRAINT ck_review_paces_spread CHECK (spread > 0 AND spread < 'Infinity')
)
"""

# ``probability`` is that of the task: the largest of its sentences'. A disputed task is open again, in its next round.
_TASKS = """
CREATE TABLE review_tasks (
    id bigint GENERATED ALWAYS AS IDENTITY,
    task_id uuid NOT NULL DEFAULT gen_random_uuid(),
    app text NOT NULL,
    interaction_id text NOT NULL,
    revision integer NOT NULL,
    interaction_pk bigint,
    scorer_id integer NOT NULL,
    threshold_id integer NOT NULL,
    reason text NOT NULL,
    probability double precision NOT NULL,
    lowest_gap double precision NOT NULL,
    reviewers integer NOT NULL,
    state text NOT NULL DEFAULT 'open',
    round integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    closed_at timestamptz,
    CONSTRAINT pk_review_tasks PRIMARY KEY (id),
    CONSTRAINT uq_review_tasks_task_id UNIQUE (task_id),
    CONSTRAINT uq_review_tasks_interaction_pk_scorer_id UNIQUE (interaction_pk, scorer_id),
    CONSTRAINT fk_review_tasks_interaction_pk_interactions
        FOREIGN KEY (interaction_pk) REFERENCES interactions (id) ON DELETE SET NULL,
    CONSTRAINT fk_review_tasks_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT fk_review_tasks_threshold_id_thresholds FOREIGN KEY (threshold_id) REFERENCES thresholds (id),
    CONSTRAINT ck_review_tasks_reason CHECK (reason IN ('flagged', 'sampled')),
    CONSTRAINT ck_review_tasks_probability CHECK (probability > 0 AND probability <= 1),
    CONSTRAINT ck_review_tasks_lowest_gap_finite CHECK (abs(lowest_gap) < 'Infinity'),
    CONSTRAINT ck_review_tasks_reviewers CHECK (reviewers BETWEEN 1 AND 9),
    CONSTRAINT ck_review_tasks_state CHECK (state IN ('open', 'disputed', 'labelled', 'withdrawn')),
    CONSTRAINT ck_review_tasks_round CHECK (round >= 1),
    CONSTRAINT ck_review_tasks_closed CHECK ((state IN ('labelled', 'withdrawn')) = (closed_at IS NOT NULL))
);
CREATE INDEX ix_review_tasks_app_created_at ON review_tasks (app, created_at);
CREATE INDEX ix_review_tasks_app_interaction_id ON review_tasks (app, interaction_id);
CREATE INDEX ix_review_tasks_open ON review_tasks (app, lowest_gap) WHERE state IN ('open', 'disputed')
"""

# The sentences that are asked about, each with the probability that it was; the rest of the answer is shown with them.
_TASK_SENTENCES = """
CREATE TABLE review_sentences (
    task_pk bigint NOT NULL,
    sentence_index integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    gap double precision NOT NULL,
    flagged boolean NOT NULL,
    reason text NOT NULL,
    probability double precision NOT NULL,
    CONSTRAINT pk_review_sentences PRIMARY KEY (task_pk, sentence_index),
    CONSTRAINT fk_review_sentences_task_pk_review_tasks FOREIGN KEY (task_pk) REFERENCES review_tasks (id),
    CONSTRAINT ck_review_sentences_index CHECK (sentence_index >= 0),
    CONSTRAINT ck_review_sentences_span CHECK (0 <= start_char AND start_char < end_char),
    CONSTRAINT ck_review_sentences_gap_finite CHECK (abs(gap) < 'Infinity'),
    CONSTRAINT ck_review_sentences_reason CHECK (reason IN ('flagged', 'sampled')),
    CONSTRAINT ck_review_sentences_probability CHECK (probability > 0 AND probability <= 1)
)
"""

# What is to be told about a task, once per channel and round. The event id stays the same however often it is sent.
# ``sent_after`` says where the topic ended before the first time: what was sent lies behind.
_OUTBOX = """
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    event_id uuid NOT NULL DEFAULT gen_random_uuid(),
    task_pk bigint NOT NULL,
    channel text NOT NULL,
    round integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    attempts integer NOT NULL DEFAULT 0,
    run_after timestamptz NOT NULL DEFAULT now(),
    lease_owner text,
    leased_until timestamptz,
    last_error text,
    sent_after jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT pk_outbox PRIMARY KEY (id),
    CONSTRAINT uq_outbox_event_id UNIQUE (event_id),
    CONSTRAINT uq_outbox_task_pk_channel_round UNIQUE (task_pk, channel, round),
    CONSTRAINT fk_outbox_task_pk_review_tasks FOREIGN KEY (task_pk) REFERENCES review_tasks (id),
    CONSTRAINT ck_outbox_channel CHECK (channel IN ('kafka', 'webhook')),
    CONSTRAINT ck_outbox_round CHECK (round >= 1),
    CONSTRAINT ck_outbox_state CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT ck_outbox_attempts CHECK (attempts >= 0),
    CONSTRAINT ck_outbox_lease
        CHECK (num_nulls(lease_owner, leased_until) = CASE WHEN state = 'running' THEN 0 ELSE 2 END),
    CONSTRAINT ck_outbox_finished CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL))
);
CREATE INDEX ix_outbox_claim ON outbox (channel, id) WHERE state = 'waiting';
CREATE INDEX ix_outbox_open ON outbox (state) WHERE state <> 'done'
"""

# Rows are only ever added. One (tool, external id) is one judgement of one reviewer on one sentence; of its rows the
# one with the latest time holds, and a repeat of a row is no other row.
_LABELS = """
CREATE TABLE review_labels (
    id bigint GENERATED ALWAYS AS IDENTITY,
    tool text NOT NULL,
    external_id text NOT NULL,
    action text NOT NULL,
    label text,
    detail text,
    task_id uuid,
    app text,
    interaction_id text,
    revision integer,
    sentence_index integer NOT NULL,
    reviewer text NOT NULL,
    note text,
    labelled_at timestamptz,
    received_at timestamptz NOT NULL DEFAULT now(),
    source text NOT NULL,
    CONSTRAINT pk_review_labels PRIMARY KEY (id),
    CONSTRAINT uq_review_labels_repeat UNIQUE NULLS NOT DISTINCT
        (tool, external_id, action, label, detail, labelled_at),
    CONSTRAINT ck_review_labels_action CHECK (action IN ('label', 'withdraw')),
    CONSTRAINT ck_review_labels_label
        CHECK (label IN ('supported', 'unsupported', 'partly', 'not_a_claim', 'cant_tell')),
    CONSTRAINT ck_review_labels_labelled CHECK ((action = 'label') = (label IS NOT NULL)),
    CONSTRAINT ck_review_labels_detail CHECK (
        detail IS NULL OR (detail IN ('baseless', 'conflict') AND label = 'unsupported')
    ),
    CONSTRAINT ck_review_labels_place
        CHECK (task_id IS NOT NULL OR (app IS NOT NULL AND interaction_id IS NOT NULL)),
    CONSTRAINT ck_review_labels_index CHECK (sentence_index >= 0),
    CONSTRAINT ck_review_labels_source CHECK (source IN ('topic', 'file', 'sql')),
    CONSTRAINT ck_review_labels_sizes CHECK (
        char_length(tool) BETWEEN 1 AND 200 AND char_length(external_id) BETWEEN 1 AND 500
        AND char_length(reviewer) BETWEEN 1 AND 200 AND char_length(note) <= 4000
    )
);
CREATE INDEX ix_review_labels_task_id ON review_labels (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX ix_review_labels_app_interaction_id ON review_labels (app, interaction_id);
CREATE INDEX ix_review_labels_received_at ON review_labels (received_at);
CREATE INDEX ix_review_labels_first_part ON review_labels (tool, split_part(external_id, ':', 1))
"""

# Every outcome is a row, a refusal too. ``numbers`` is flat.
_CALIBRATION_RUNS = """
CREATE TABLE calibration_runs (
    id bigint GENERATED ALWAYS AS IDENTITY,
    app text,
    scorer_id integer NOT NULL,
    ran_at timestamptz NOT NULL DEFAULT now(),
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    in_force_id integer NOT NULL,
    threshold_id integer,
    numbers jsonb NOT NULL,
    CONSTRAINT pk_calibration_runs PRIMARY KEY (id),
    CONSTRAINT fk_calibration_runs_scorer_id_scorers FOREIGN KEY (scorer_id) REFERENCES scorers (id),
    CONSTRAINT fk_calibration_runs_in_force_id_thresholds FOREIGN KEY (in_force_id) REFERENCES thresholds (id),
    CONSTRAINT fk_calibration_runs_threshold_id_thresholds FOREIGN KEY (threshold_id) REFERENCES thresholds (id),
    CONSTRAINT ck_calibration_runs_app CHECK (app <> ''),
    CONSTRAINT ck_calibration_runs_trigger CHECK (trigger IN ('schedule', 'command')),
    CONSTRAINT ck_calibration_runs_outcome CHECK (outcome IN ('new', 'unchanged', 'refused')),
    CONSTRAINT ck_calibration_runs_threshold CHECK ((outcome = 'new') = (threshold_id IS NOT NULL)),
    CONSTRAINT ck_calibration_runs_numbers CHECK (jsonb_typeof(numbers) = 'object')
);
CREATE INDEX ix_calibration_runs_ran_at ON calibration_runs (ran_at)
"""

# Which version was in force when: one that is rolled back to is activated once more, and one that is withdrawn leaves
# its app to the default.
_ACTIVATIONS = """
CREATE TABLE threshold_activations (
    id bigint GENERATED ALWAYS AS IDENTITY,
    threshold_id integer NOT NULL,
    activated_at timestamptz NOT NULL DEFAULT now(),
    activated_by text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT pk_threshold_activations PRIMARY KEY (id),
    CONSTRAINT fk_threshold_activations_threshold_id_thresholds FOREIGN KEY (threshold_id) REFERENCES thresholds (id),
    CONSTRAINT ck_threshold_activations_reason CHECK (
        reason IN ('seeded', 'calibrated', 'manual', 'rollback', 'withdrawn')
    )
);
INSERT INTO threshold_activations (threshold_id, activated_at, activated_by, reason)
SELECT id, activated_at, 'migration', learned_from FROM thresholds WHERE activated_at IS NOT NULL ORDER BY activated_at
"""

# A curve gives P(unsupported | score); versions that were not learned from labels have none.
_CURVES = """
ALTER TABLE thresholds
    ADD COLUMN curve jsonb,
    ADD CONSTRAINT ck_thresholds_curve CHECK (jsonb_typeof(curve) = 'object');
ALTER TABLE sentences
    ADD COLUMN unsupported_probability double precision,
    ADD CONSTRAINT ck_sentences_unsupported_probability CHECK (
        unsupported_probability IS NULL
        OR (unsupported_probability >= 0 AND unsupported_probability <= 1 AND gap IS NOT NULL)
    )
"""

# The label topic's records are settled in the same book as the interactions'.
_LEDGER = """
ALTER TABLE ledger
    DROP CONSTRAINT ck_ledger_outcome,
    DROP CONSTRAINT ck_ledger_reason,
    ADD CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('scored', 'labelled', 'skipped', 'dead_lettered')),
    ADD CONSTRAINT ck_ledger_reason CHECK ((reason IS NULL) = (outcome IN ('scored', 'labelled')))
"""

_LEDGER_BEFORE = """
DELETE FROM ledger WHERE outcome = 'labelled';
ALTER TABLE ledger
    DROP CONSTRAINT ck_ledger_outcome,
    DROP CONSTRAINT ck_ledger_reason,
    ADD CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('scored', 'skipped', 'dead_lettered')),
    ADD CONSTRAINT ck_ledger_reason CHECK ((reason IS NULL) = (outcome = 'scored'))
"""

# What holds of each judgement, beside the task and the sentence it is about. A label without a task is about the
# revision it names, else the first. ``place`` says what cannot be used: 'unknown' has no stored answer (yet, or any
# more), 'superseded' is about an answer that was replaced, and counts all the same.
_V_REVIEW_LABELS = """
CREATE VIEW v_review_labels AS
SELECT
    coalesce(l.labelled_at, l.received_at) AS time,
    l.tool,
    l.external_id,
    l.reviewer,
    l.label,
    l.detail,
    l.note,
    coalesce(t.app, l.app) AS app,
    coalesce(t.interaction_id, l.interaction_id) AS interaction_id,
    coalesce(t.revision, l.revision, 1) AS revision,
    l.sentence_index,
    t.task_id,
    s.gap,
    s.flagged,
    s.probability AS selection_probability,
    s.reason AS selection_reason,
    CASE WHEN i.id IS NULL AND t.id IS NULL THEN 'unknown' WHEN NOT i.is_current THEN 'superseded' ELSE 'known' END
        AS place,
    l.received_at,
    t.id AS task_pk,
    i.id AS interaction_pk,
    t.scorer_id
FROM review_labels l
LEFT JOIN LATERAL (
    SELECT found.* FROM review_tasks found
    WHERE found.task_id = l.task_id OR (
        l.task_id IS NULL AND found.app = l.app AND found.interaction_id = l.interaction_id
        AND found.revision = coalesce(l.revision, 1)
    )
    ORDER BY found.id LIMIT 1
) AS t ON true
LEFT JOIN review_sentences s ON s.task_pk = t.id AND s.sentence_index = l.sentence_index
LEFT JOIN interactions i ON i.app = coalesce(t.app, l.app)
    AND i.interaction_id = coalesce(t.interaction_id, l.interaction_id)
    AND i.revision = coalesce(t.revision, l.revision, 1)
WHERE l.action = 'label' AND NOT EXISTS (
    SELECT FROM review_labels later
    WHERE later.tool = l.tool AND later.external_id = l.external_id
        AND (coalesce(later.labelled_at, later.received_at), later.id) > (coalesce(l.labelled_at, l.received_at), l.id)
)
"""

# What the reviewers of a sentence say together, where more of them say one thing than the other. Of each reviewer the
# newest label counts; partly supported is unsupported, what claims nothing is supported, who cannot tell has no vote.
# Only what was asked about has a selection probability. The span lets another scorer's sentence be found.
_V_REVIEW_CONSENSUS = """
CREATE VIEW v_review_consensus AS
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
    coalesce(asked.gap, scored.gap) AS gap,
    asked.probability AS selection_probability,
    asked.reason AS selection_reason,
    coalesce(asked.start_char, scored.start_char) AS start_char,
    coalesce(asked.end_char, scored.end_char) AS end_char,
    votes.task_pk,
    votes.interaction_pk,
    coalesce(votes.scorer_id, scored.scorer_id) AS scorer_id
FROM (
    SELECT
        max(time) AS time, app, interaction_id, revision, sentence_index, task_pk, interaction_pk, scorer_id,
        count(*) FILTER (WHERE label IN ('unsupported', 'partly')) AS bad,
        count(*) FILTER (WHERE label IN ('supported', 'not_a_claim')) AS good,
        count(*) AS reviewers
    FROM (
        SELECT DISTINCT ON (app, interaction_id, revision, task_pk, sentence_index, reviewer) *
        FROM v_review_labels
        WHERE place <> 'unknown'
        ORDER BY app, interaction_id, revision, task_pk, sentence_index, reviewer, time DESC, received_at DESC
    ) AS newest
    GROUP BY app, interaction_id, revision, sentence_index, task_pk, interaction_pk, scorer_id
) AS votes
LEFT JOIN review_sentences asked ON asked.task_pk = votes.task_pk AND asked.sentence_index = votes.sentence_index
LEFT JOIN LATERAL (
    SELECT v.scorer_id, s.gap, s.start_char, s.end_char
    FROM verdicts v JOIN sentences s ON s.verdict_id = v.id AND s.scored_at = v.scored_at
    WHERE asked.task_pk IS NULL AND v.interaction_pk = votes.interaction_pk
        AND v.scorer_id = coalesce(votes.scorer_id, v.scorer_id)
        AND s.sentence_index = votes.sentence_index AND s.gap IS NOT NULL
    ORDER BY v.id LIMIT 1
) AS scored ON true
WHERE votes.bad <> votes.good AND coalesce(asked.gap, scored.gap) IS NOT NULL
"""

# Krippendorff's alpha of the votes, for each pair of reviewers, and for all of an app where both names are NULL. It is
# NULL where all the votes are the same, since then nothing can be told from chance.
_V_REVIEWER_AGREEMENT = """
CREATE VIEW v_reviewer_agreement AS
WITH votes AS (
    SELECT DISTINCT ON (app, interaction_id, revision, sentence_index, reviewer)
        app, interaction_id, revision, sentence_index, reviewer, label,
        CASE WHEN label IN ('unsupported', 'partly') THEN 1 WHEN label <> 'cant_tell' THEN 0 END AS bad
    FROM v_review_labels
    ORDER BY app, interaction_id, revision, sentence_index, reviewer, time DESC, received_at DESC
), sentence AS (
    SELECT app, NULL AS reviewer_a, NULL AS reviewer_b, count(*) AS votes, sum(bad) AS bad
    FROM votes
    WHERE bad IS NOT NULL
    GROUP BY app, interaction_id, revision, sentence_index
    HAVING count(*) > 1
    UNION ALL
    SELECT a.app, a.reviewer, b.reviewer, 2, a.bad + b.bad
    FROM votes a JOIN votes b USING (app, interaction_id, revision, sentence_index)
    WHERE a.reviewer < b.reviewer AND a.bad IS NOT NULL AND b.bad IS NOT NULL
)
SELECT
    app,
    reviewer_a,
    reviewer_b,
    count(*) AS sentences,
    count(*) FILTER (WHERE bad IN (0, votes)) AS agreed,
    1 - (sum(votes) - 1) * sum(bad * (votes - bad)::double precision / (votes - 1))
        / nullif(sum(bad) * sum(votes - bad), 0)::double precision AS alpha
FROM sentence
GROUP BY app, reviewer_a, reviewer_b
"""

# The task that a label is about: the one it names, else the first of the answer.
_REVIEW_TASK_OF = """
CREATE FUNCTION review_task_of(named uuid, of_app text, of_interaction text, of_revision integer) RETURNS bigint
LANGUAGE sql STABLE SET search_path = {schema}, pg_temp AS $$
    SELECT id FROM review_tasks
    WHERE task_id = named OR (
        named IS NULL AND app = of_app AND interaction_id = of_interaction AND revision = coalesce(of_revision, 1)
    )
    ORDER BY id LIMIT 1
$$
"""

# Whether a label can be about this sentence: 'early' has neither answer nor task yet, 'unknown_sentence' has, but no
# such sentence, or one without a score.
_REVIEW_LABEL_PLACE = """
CREATE FUNCTION review_label_place(
    named uuid, of_app text, of_interaction text, of_revision integer, of_sentence integer
) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = {schema}, pg_temp AS $$
DECLARE
    task review_tasks;
    answer record;
BEGIN
    SELECT * INTO task FROM review_tasks WHERE id = review_task_of(named, of_app, of_interaction, of_revision);
    SELECT id, is_current INTO answer FROM interactions
    WHERE app = coalesce(task.app, of_app) AND interaction_id = coalesce(task.interaction_id, of_interaction)
        AND revision = coalesce(task.revision, of_revision, 1);
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
$$
"""

# Brings a task to what its labels say, and gives its state. A sentence is settled when enough reviewers have labelled
# it and their votes agree. Where they do not, the task is disputed and goes out again, each time for one reviewer more:
# from the second round on the majority holds, and after the third the task is closed even on a tie. The task's row
# stays locked to the end of the transaction, so that of two reviewers at once the second sees what the first said.
_SETTLE_REVIEW_TASK = """
CREATE FUNCTION settle_review_task(task bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
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
$$
"""

# Labels by plain SQL. What is left out is filled in; a time of one's own lets a correction be told from a repeat.
_REVIEW_LABEL_ENTRY = """
CREATE VIEW review_label_entry AS
SELECT task_id, app, interaction_id, revision, sentence_index, label, detail, note, reviewer, external_id, labelled_at,
    action
FROM review_labels WHERE source = 'sql'
"""

_ENTER_REVIEW_LABEL = """
CREATE FUNCTION enter_review_label() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
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
        SELECT DISTINCT review_task_of(task_id, app, interaction_id, revision) FROM review_labels
        WHERE tool = 'sql' AND external_id = NEW.external_id ORDER BY 1
    LOOP
        PERFORM settle_review_task(task);
    END LOOP;
    RETURN NEW;
END
$$;
CREATE TRIGGER enter_review_label INSTEAD OF INSERT ON review_label_entry
FOR EACH ROW EXECUTE FUNCTION enter_review_label()
"""

_LABEL_FUNCTIONS = "review_task_of, review_label_place, settle_review_task, enter_review_label"

_REVIEW_TABLES = (
    "threshold_activations, calibration_runs, review_labels, outbox, review_sentences, review_tasks, review_paces, "
    "review_policies"
)


def upgrade() -> None:
    for statement in (
        _POLICIES,
        _PACES,
        _TASKS,
        _TASK_SENTENCES,
        _OUTBOX,
        _LABELS,
        _CALIBRATION_RUNS,
        _ACTIVATIONS,
        _CURVES,
        _LEDGER,
        _V_REVIEW_LABELS,
        _V_REVIEW_CONSENSUS,
        _V_REVIEWER_AGREEMENT,
        _REVIEW_LABEL_ENTRY,
    ):
        op.execute(statement)
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for function in (_REVIEW_TASK_OF, _REVIEW_LABEL_PLACE, _SETTLE_REVIEW_TASK, _ENTER_REVIEW_LABEL):
        op.execute(function.replace("{schema}", schema))
    op.execute(f"REVOKE EXECUTE ON FUNCTION {_LABEL_FUNCTIONS} FROM PUBLIC")
    op.execute("DROP VIEW v_flagged_sentences, v_sentences")
    op.execute(_before("_V_SENTENCES").replace("    s.gap,\n", "    s.gap,\n    s.unsupported_probability,\n"))
    op.execute(_before("_V_FLAGGED_SENTENCES"))


def downgrade() -> None:
    op.execute("DROP VIEW review_label_entry, v_reviewer_agreement, v_review_consensus, v_review_labels")
    op.execute(f"DROP FUNCTION {_LABEL_FUNCTIONS}")
    op.execute("DROP VIEW v_flagged_sentences, v_sentences")
    op.execute(f"DROP TABLE {_REVIEW_TABLES}")
    op.execute(_LEDGER_BEFORE)
    op.execute("ALTER TABLE sentences DROP COLUMN unsupported_probability")
    op.execute("ALTER TABLE thresholds DROP COLUMN curve")
    op.execute(_before("_V_SENTENCES"))
    op.execute(_before("_V_FLAGGED_SENTENCES"))


def _before(view: str) -> str:
    """A view as the revision before defines it."""
    definition: str = getattr(import_module("migrations.versions.0003_delivery"), view)
    return definition
