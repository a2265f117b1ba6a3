"""What was logged, and what was found in it."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from worker.store.tables.metadata import METADATA, TIME

interactions = Table(
    "interactions",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("app", Text, nullable=False),
    Column("interaction_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("is_current", Boolean, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("occurred_at", TIME),
    Column("received_at", TIME),
    Column("stored_at", TIME, nullable=False, server_default=func.now()),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("generator_model", Text),
    Column("metadata", JSONB, nullable=False),
    Column("repairs", ARRAY(Text), nullable=False),
    Column("adapter", Text, nullable=False),
    Column("source_topic", Text, nullable=False),
    Column("source_partition", Integer, nullable=False),
    Column("source_offset", BigInteger, nullable=False),
    # When and where the content came last, unless the columns above say it.
    Column("newest_delivery", JSONB(none_as_null=True)),
    # Spans of the answer that are no part of what it says, as the contract has them; NULL if there are none.
    Column("answer_marks", JSONB(none_as_null=True)),
    # Of an exchange that was put together from several messages: where these lie, and the trace that they were.
    Column("sources", JSONB(none_as_null=True)),
    Column("trace", JSONB(none_as_null=True)),
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
    # Why it is no evidence and was not read; workers of 0.1.0 leave it empty.
    Column("skip_reason", Text),
    # The interaction's own; the table is partitioned by it.
    Column("stored_at", TIME, server_default=func.now()),
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
    Column("scored_at", TIME, nullable=False, server_default=func.now()),
    Column("attributed_at", TIME),
    Column("context_windows", Integer, nullable=False),
    # A tag (BCP 47) of what the answer tells, and whether its words can be compared.
    Column("language", Text),
    Column("language_supported", Boolean),
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
    Column("supporting_passages", ARRAY(Integer)),
    Column("support_unlocated", Boolean),
    # What a correction may read, in the order of worker.rules.refit.correction.TERMS; NULL without a score.
    Column("terms", ARRAY(REAL)),
    # What reviewers taught added to the detector's score, of which ``score`` is the sum; NULL if nothing was added.
    Column("correction", Double),
    # The words that are grounded least, within the sentence; NULL without a score.
    Column("worst_start", Integer),
    Column("worst_end", Integer),
    # The verdict's own; the table is partitioned by it, and so is the next.
    Column("scored_at", TIME, server_default=func.now()),
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
    Column("scored_at", TIME),
    PrimaryKeyConstraint("verdict_id", "sentence_index", "chunk_index", "scored_at"),
    ForeignKeyConstraint(["verdict_id", "scored_at"], ["verdicts.id", "verdicts.scored_at"], ondelete="CASCADE"),
)
