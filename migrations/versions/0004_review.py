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
    CONSTRAINT ck_review_policies_target CHECK (target > 0 AND target < 'Infinity'),
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
    CONSTRAINT ck_review_paces_expected CHECK (
        expected_flagged >= 0 AND expected_flagged < 'Infinity' AND expected_sampled >= 0
        AND expected_sampled < 'Infinity'
    ),
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
CREATE INDEX ix_review_labels_received_at ON review_labels (received_at)
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

# Which version was in force when: a version that is rolled back to is activated once more.
_ACTIVATIONS = """
CREATE TABLE threshold_activations (
    id bigint GENERATED ALWAYS AS IDENTITY,
    threshold_id integer NOT NULL,
    activated_at timestamptz NOT NULL DEFAULT now(),
    activated_by text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT pk_threshold_activations PRIMARY KEY (id),
    CONSTRAINT fk_threshold_activations_threshold_id_thresholds FOREIGN KEY (threshold_id) REFERENCES thresholds (id),
    CONSTRAINT ck_threshold_activations_reason CHECK (reason IN ('seeded', 'calibrated', 'manual', 'rollback'))
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
FROM (
    SELECT DISTINCT ON (tool, external_id) *
    FROM review_labels
    ORDER BY tool, external_id, coalesce(labelled_at, received_at) DESC, id DESC
) AS l
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
WHERE l.action = 'label'
"""

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
    ):
        op.execute(statement)
    op.execute("DROP VIEW v_flagged_sentences, v_sentences")
    op.execute(_before("_V_SENTENCES").replace("    s.gap,\n", "    s.gap,\n    s.unsupported_probability,\n"))
    op.execute(_before("_V_FLAGGED_SENTENCES"))


def downgrade() -> None:
    op.execute("DROP VIEW v_review_labels")
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
