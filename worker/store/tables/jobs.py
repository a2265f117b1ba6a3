"""Jobs that are leased, but for the outbox."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
)

from worker.store.tables.metadata import METADATA, TIME

attribution_jobs = Table(
    "attribution_jobs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("verdict_id", BigInteger, ForeignKey("verdicts.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("priority", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
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
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
    UniqueConstraint("interaction_pk", "scorer_id"),
)
Index(
    "ix_rescore_jobs_claim",
    rescore_jobs.c.scorer_id,
    rescore_jobs.c.id,
    postgresql_where=rescore_jobs.c.state == "waiting",
)
Index("ix_rescore_jobs_open", rescore_jobs.c.state, postgresql_where=rescore_jobs.c.state != "done")

result_exports = Table(
    "result_exports",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("verdict_id", BigInteger, ForeignKey("verdicts.id", ondelete="CASCADE"), nullable=False),
    Column("destination", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
    UniqueConstraint("verdict_id", "destination"),
)
Index(
    "ix_result_exports_claim",
    result_exports.c.destination,
    result_exports.c.id,
    postgresql_where=result_exports.c.state == "waiting",
)
Index("ix_result_exports_open", result_exports.c.state, postgresql_where=result_exports.c.state != "done")

second_opinions = Table(
    "second_opinions",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("verdict_id", BigInteger, nullable=False),
    # The verdict's own, which finds the week of the sentence.
    Column("scored_at", TIME, nullable=False),
    Column("sentence_index", Integer, nullable=False),
    Column("verifier", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("priority", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("label", Text),
    Column("p_unsupported", Double),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
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
