"""Who is asked about what, what is told of it, and what people said."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from worker.store.tables.metadata import METADATA, TIME

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
    # Policies that workers of 0.1.0 set do not say it.
    Column("flag_share", Double, nullable=False, server_default=text("0.15")),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
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
    Column("computed_at", TIME, nullable=False, server_default=func.now()),
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
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("closed_at", TIME),
    Column("closed_because", Text),
    UniqueConstraint("interaction_pk", "scorer_id"),
)
Index(None, review_tasks.c.app, review_tasks.c.created_at)
Index(None, review_tasks.c.created_at)
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
    # Those of the sentence when it was chosen.
    Column("terms", ARRAY(REAL)),
    Column("correction", Double),
    PrimaryKeyConstraint("task_pk", "sentence_index"),
)

review_leases = Table(
    "review_leases",
    METADATA,
    Column("task_pk", BigInteger, ForeignKey("review_tasks.id")),
    Column("reviewer", Text),
    Column("is_skipped", Boolean, nullable=False),
    Column("leased_until", TIME, nullable=False),
    PrimaryKeyConstraint("task_pk", "reviewer"),
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
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("sent_after", JSONB),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
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
    Column("labelled_at", TIME),
    Column("received_at", TIME, nullable=False, server_default=func.now()),
    Column("source", Text, nullable=False),
    # Of what came by plain SQL: the login.
    Column("entered_by", Text),
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
reviewer_logins = Table(
    "reviewer_logins",
    METADATA,
    Column("login", Text, primary_key=True),
    Column("reviewer", Text, primary_key=True),
)
Index(None, review_labels.c.task_id, postgresql_where=review_labels.c.task_id.is_not(None))
Index(None, review_labels.c.app, review_labels.c.interaction_id)
Index(None, review_labels.c.received_at)
Index("ix_review_labels_first_part", review_labels.c.tool, func.split_part(review_labels.c.external_id, ":", 1))
