"""The tables as the store's statements see them: names, types, keys and indexes.

The migrations make the database, with its check constraints and views; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

_TIME = DateTime(timezone=True)

scorers = Table(
    "scorers",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("model", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("dtype", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    UniqueConstraint("model", "revision", "dtype", "template", "method", name="uq_scorers_identity"),
)

thresholds = Table(
    "thresholds",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("flag_below", Double, nullable=False),
    Column("attribute_below", Double, nullable=False),
    Column("learned_from", Text, nullable=False),
    Column("note", Text),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("activated_at", _TIME),
    Column("is_active", Boolean, nullable=False, server_default=text("false")),
    Column("curve", JSONB),
    UniqueConstraint("app", "scorer_id", "version", postgresql_nulls_not_distinct=True),
)
Index(
    "uq_thresholds_active",
    thresholds.c.app,
    thresholds.c.scorer_id,
    unique=True,
    postgresql_nulls_not_distinct=True,
    postgresql_where=thresholds.c.is_active,
)

interactions = Table(
    "interactions",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("app", Text, nullable=False),
    Column("interaction_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("is_current", Boolean, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("occurred_at", _TIME),
    Column("received_at", _TIME),
    Column("stored_at", _TIME, nullable=False, server_default=func.now()),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("generator_model", Text),
    Column("metadata", JSONB, nullable=False),
    Column("repairs", ARRAY(Text), nullable=False),
    Column("adapter", Text, nullable=False),
    Column("source_topic", Text, nullable=False),
    Column("source_partition", Integer, nullable=False),
    Column("source_offset", BigInteger, nullable=False),
    UniqueConstraint("app", "interaction_id", "content_hash", name="uq_interactions_content"),
    UniqueConstraint("app", "interaction_id", "revision", name="uq_interactions_revision"),
    UniqueConstraint("id", "stored_at", name="uq_interactions_id_stored_at"),
    Index(None, "app", "stored_at"),
)
INTERACTION_TIME = func.coalesce(interactions.c.occurred_at, interactions.c.received_at, interactions.c.stored_at)
"""The time of an interaction as the views show it; there is an index on it."""
Index("ix_interactions_app_time", interactions.c.app, INTERACTION_TIME)
Index("ix_interactions_time", INTERACTION_TIME)
# The views of rates are looked up by their buckets, which they reckon in just these words.
for _name, _width in (("5m", "00:05:00"), ("1d", "1 day")):
    Index(
        f"ix_interactions_time_{_name}",
        func.date_bin(text(f"'{_width}'::interval"), INTERACTION_TIME, text("to_timestamp(0)")),
    )
Index(
    "uq_interactions_current",
    interactions.c.app,
    interactions.c.interaction_id,
    unique=True,
    postgresql_where=interactions.c.is_current,
)

passages = Table(
    "passages",
    METADATA,
    Column("interaction_pk", BigInteger),
    Column("position", Integer),
    Column("passage_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("score", Double),
    Column("metadata", JSONB, nullable=False),
    # The interaction's own; the table is partitioned by it.
    Column("stored_at", _TIME, server_default=func.now()),
    PrimaryKeyConstraint("interaction_pk", "position", "stored_at"),
    ForeignKeyConstraint(
        ["interaction_pk", "stored_at"], ["interactions.id", "interactions.stored_at"], ondelete="CASCADE"
    ),
)

verdicts = Table(
    "verdicts",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("interaction_pk", BigInteger, ForeignKey("interactions.id", ondelete="CASCADE"), nullable=False),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("threshold_id", Integer, ForeignKey("thresholds.id")),
    Column("method", Text, nullable=False),
    Column("skip_reason", Text),
    Column("lowest_score", Double),
    Column("context_tokens", Integer, nullable=False),
    Column("context_tokens_cut", Integer, nullable=False),
    Column("answer_tokens", Integer, nullable=False),
    Column("answer_tokens_cut", Integer, nullable=False),
    Column("n_sentences", Integer, nullable=False),
    Column("n_scored", Integer, nullable=False),
    Column("n_flagged", Integer, nullable=False),
    Column("scored_at", _TIME, nullable=False, server_default=func.now()),
    Column("attributed_at", _TIME),
    Column("context_windows", Integer, nullable=False),
    UniqueConstraint("interaction_pk", "scorer_id"),
    UniqueConstraint("id", "scored_at", name="uq_verdicts_id_scored_at"),
)
# What second opinions are looked for in.
Index("ix_verdicts_attributed_flagged", verdicts.c.attributed_at, postgresql_where=verdicts.c.n_flagged > 0)

sentences = Table(
    "sentences",
    METADATA,
    Column("verdict_id", BigInteger),
    Column("sentence_index", Integer),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("n_tokens", Integer, nullable=False),
    Column("score", Double),
    Column("gap", Double),
    Column("jsd_no_context", Double),
    Column("surprisal", Double),
    Column("skip_reason", Text),
    Column("flagged", Boolean),
    Column("supporting_chunk", Integer),
    Column("supporting_passage", Integer),
    Column("supporting_drop", Double),
    Column("context_window", Integer),
    Column("contradicting_chunk", Integer),
    Column("contradicting_passage", Integer),
    Column("contradicting_drop", Double),
    Column("unsupported_probability", Double),
    # The verdict's own; the table is partitioned by it, and so is the next.
    Column("scored_at", _TIME, server_default=func.now()),
    PrimaryKeyConstraint("verdict_id", "sentence_index", "scored_at"),
    ForeignKeyConstraint(["verdict_id", "scored_at"], ["verdicts.id", "verdicts.scored_at"], ondelete="CASCADE"),
)

chunk_attributions = Table(
    "chunk_attributions",
    METADATA,
    Column("verdict_id", BigInteger),
    Column("sentence_index", Integer),
    Column("chunk_index", Integer),
    Column("passage_position", Integer, nullable=False),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("chunk_group", Integer, nullable=False),
    Column("drop", Double, nullable=False),
    Column("jsd", Double, nullable=False),
    Column("scored_at", _TIME),
    PrimaryKeyConstraint("verdict_id", "sentence_index", "chunk_index", "scored_at"),
    ForeignKeyConstraint(["verdict_id", "scored_at"], ["verdicts.id", "verdicts.scored_at"], ondelete="CASCADE"),
)

attribution_jobs = Table(
    "attribution_jobs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("verdict_id", BigInteger, ForeignKey("verdicts.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("priority", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", _TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", _TIME),
    Column("last_error", Text),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("finished_at", _TIME),
)
Index(
    "ix_attribution_jobs_claim",
    attribution_jobs.c.scorer_id,
    attribution_jobs.c.priority,
    attribution_jobs.c.id,
    postgresql_where=attribution_jobs.c.state == "waiting",
)
Index("ix_attribution_jobs_open", attribution_jobs.c.state, postgresql_where=attribution_jobs.c.state != "done")

rescore_jobs = Table(
    "rescore_jobs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("interaction_pk", BigInteger, ForeignKey("interactions.id", ondelete="CASCADE"), nullable=False),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", _TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", _TIME),
    Column("last_error", Text),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("finished_at", _TIME),
    UniqueConstraint("interaction_pk", "scorer_id"),
)
Index(
    "ix_rescore_jobs_claim",
    rescore_jobs.c.scorer_id,
    rescore_jobs.c.id,
    postgresql_where=rescore_jobs.c.state == "waiting",
)
Index("ix_rescore_jobs_open", rescore_jobs.c.state, postgresql_where=rescore_jobs.c.state != "done")

second_opinions = Table(
    "second_opinions",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("verdict_id", BigInteger, nullable=False),
    # The verdict's own, which finds the week of the sentence.
    Column("scored_at", _TIME, nullable=False),
    Column("sentence_index", Integer, nullable=False),
    Column("verifier", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("priority", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", _TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", _TIME),
    Column("last_error", Text),
    Column("label", Text),
    Column("p_unsupported", Double),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("finished_at", _TIME),
    UniqueConstraint("verdict_id", "sentence_index", "verifier", name="uq_second_opinions_sentence"),
    ForeignKeyConstraint(["verdict_id", "scored_at"], ["verdicts.id", "verdicts.scored_at"], ondelete="CASCADE"),
)
Index(
    "ix_second_opinions_claim",
    second_opinions.c.verifier,
    second_opinions.c.priority,
    second_opinions.c.id,
    postgresql_where=second_opinions.c.state == "waiting",
)
Index("ix_second_opinions_open", second_opinions.c.state, postgresql_where=second_opinions.c.state != "done")
Index(None, second_opinions.c.created_at)

ledger = Table(
    "ledger",
    METADATA,
    Column("topic", Text),
    Column("partition", Integer),
    Column("incarnation", Integer, server_default="0"),
    Column("record_offset", BigInteger),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("detail", Text),
    Column("interaction_pk", BigInteger, ForeignKey("interactions.id", ondelete="SET NULL")),
    Column("value_bytes", Integer, nullable=False),
    Column("broker_time", _TIME),
    Column("settled_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("topic", "partition", "incarnation", "record_offset"),
)
Index("ix_ledger_settled_at", ledger.c.settled_at, postgresql_using="brin")
Index(None, ledger.c.interaction_pk, postgresql_where=ledger.c.interaction_pk.is_not(None))
Index("ix_ledger_dead_letters", ledger.c.settled_at, postgresql_where=ledger.c.outcome == "dead_lettered")

partition_offsets = Table(
    "partition_offsets",
    METADATA,
    Column("topic", Text),
    Column("partition", Integer),
    Column("next_offset", BigInteger, nullable=False),
    Column("end_offset", BigInteger),
    Column("generation", Integer, nullable=False, server_default="-1"),
    Column("owner", Text, nullable=False, server_default=""),
    Column("last_broker_time", _TIME),
    Column("updated_at", _TIME, nullable=False, server_default=func.now()),
    Column("incarnation", Integer, nullable=False, server_default="0"),
    Column("topic_id", Text),
    PrimaryKeyConstraint("topic", "partition"),
)

offset_gaps = Table(
    "offset_gaps",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("from_offset", BigInteger, nullable=False),
    Column("to_offset", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("noticed_at", _TIME, nullable=False, server_default=func.now()),
)

# Written by the migrations alone.
schema_revisions = Table(
    "schema_revisions",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("completes", Text),
    Column("applied_at", _TIME, nullable=False, server_default=func.now()),
)

job_runs = Table(
    "job_runs",
    METADATA,
    Column("job", Text),
    Column("scheduled_for", _TIME),
    Column("owner", Text, nullable=False),
    Column("started_at", _TIME, nullable=False, server_default=func.now()),
    Column("finished_at", _TIME),
    Column("outcome", Text, nullable=False, server_default="running"),
    Column("detail", Text),
    PrimaryKeyConstraint("job", "scheduled_for"),
)

retention_periods = Table(
    "retention_periods",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("keep_days", Integer),
    Column("updated_at", _TIME, nullable=False, server_default=func.now()),
    UniqueConstraint("app", name="uq_retention_periods_app", postgresql_nulls_not_distinct=True),
)

review_policies = Table(
    "review_policies",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("daily_sentences", Integer, nullable=False),
    Column("sampled_share", Double, nullable=False),
    Column("objective", Text, nullable=False),
    Column("target", Double, nullable=False),
    Column("attribution_share", Double, nullable=False),
    Column("reviewers", Integer, nullable=False),
    Column("updated_at", _TIME, nullable=False, server_default=func.now()),
    UniqueConstraint("app", postgresql_nulls_not_distinct=True),
)

review_paces = Table(
    "review_paces",
    METADATA,
    Column("app", Text),
    Column("scorer_id", Integer, ForeignKey("scorers.id")),
    Column("expected_flagged", Double, nullable=False),
    Column("expected_sampled", Double, nullable=False),
    Column("spread", Double, nullable=False),
    Column("computed_at", _TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("app", "scorer_id"),
)

review_tasks = Table(
    "review_tasks",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("task_id", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("app", Text, nullable=False),
    Column("interaction_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("interaction_pk", BigInteger, ForeignKey("interactions.id", ondelete="SET NULL")),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("threshold_id", Integer, ForeignKey("thresholds.id"), nullable=False),
    Column("reason", Text, nullable=False),
    Column("probability", Double, nullable=False),
    Column("lowest_score", Double, nullable=False),
    Column("reviewers", Integer, nullable=False),
    Column("state", Text, nullable=False, server_default="open"),
    Column("round", Integer, nullable=False, server_default="1"),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("closed_at", _TIME),
    UniqueConstraint("interaction_pk", "scorer_id"),
)
Index(None, review_tasks.c.app, review_tasks.c.created_at)
Index(None, review_tasks.c.app, review_tasks.c.interaction_id)
Index(
    "ix_review_tasks_open",
    review_tasks.c.app,
    review_tasks.c.lowest_score,
    postgresql_where=review_tasks.c.state.in_(["open", "disputed"]),
)

review_sentences = Table(
    "review_sentences",
    METADATA,
    Column("task_pk", BigInteger, ForeignKey("review_tasks.id")),
    Column("sentence_index", Integer),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("score", Double, nullable=False),
    Column("flagged", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("probability", Double, nullable=False),
    PrimaryKeyConstraint("task_pk", "sentence_index"),
)

outbox = Table(
    "outbox",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event_id", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("task_pk", BigInteger, ForeignKey("review_tasks.id"), nullable=False),
    Column("channel", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", _TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", _TIME),
    Column("last_error", Text),
    Column("sent_after", JSONB),
    Column("created_at", _TIME, nullable=False, server_default=func.now()),
    Column("finished_at", _TIME),
    UniqueConstraint("task_pk", "channel", "round"),
)
Index("ix_outbox_claim", outbox.c.channel, outbox.c.id, postgresql_where=outbox.c.state == "waiting")
Index("ix_outbox_open", outbox.c.state, postgresql_where=outbox.c.state != "done")

review_labels = Table(
    "review_labels",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tool", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("label", Text),
    Column("detail", Text),
    Column("task_id", Uuid),
    Column("app", Text),
    Column("interaction_id", Text),
    Column("revision", Integer),
    Column("sentence_index", Integer, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("note", Text),
    Column("labelled_at", _TIME),
    Column("received_at", _TIME, nullable=False, server_default=func.now()),
    Column("source", Text, nullable=False),
    UniqueConstraint(
        "tool",
        "external_id",
        "action",
        "label",
        "detail",
        "labelled_at",
        name="uq_review_labels_repeat",
        postgresql_nulls_not_distinct=True,
    ),
)
Index(None, review_labels.c.task_id, postgresql_where=review_labels.c.task_id.is_not(None))
Index(None, review_labels.c.app, review_labels.c.interaction_id)
Index(None, review_labels.c.received_at)
Index("ix_review_labels_first_part", review_labels.c.tool, func.split_part(review_labels.c.external_id, ":", 1))

calibration_runs = Table(
    "calibration_runs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("ran_at", _TIME, nullable=False, server_default=func.now()),
    Column("trigger", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("in_force_id", Integer, ForeignKey("thresholds.id"), nullable=False),
    Column("threshold_id", Integer, ForeignKey("thresholds.id")),
    Column("numbers", JSONB, nullable=False),
)
Index(None, calibration_runs.c.ran_at)

threshold_activations = Table(
    "threshold_activations",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("threshold_id", Integer, ForeignKey("thresholds.id"), nullable=False),
    Column("activated_at", _TIME, nullable=False, server_default=func.now()),
    Column("activated_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
)
