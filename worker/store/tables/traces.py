"""Traces whose steps lie in many messages, and what is kept of these until an exchange was made of them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
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

traces = Table(
    "traces",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("system", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("app", Text),
    Column("first_at", TIME, nullable=False, server_default=func.now()),
    Column("last_at", TIME, nullable=False, server_default=func.now()),
    Column("last_broker_time", TIME),
    Column("pieces", Integer, nullable=False, server_default="0"),
    Column("steps", Integer, nullable=False, server_default="0"),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("version", Integer, nullable=False, server_default="0"),
    Column("has_root", Boolean, nullable=False, server_default="false"),
    Column("is_incomplete", Boolean, nullable=False, server_default="false"),
    Column("late_pieces", Integer, nullable=False, server_default="0"),
    Column("closings", Integer, nullable=False, server_default="0"),
    Column("closed_by", Text),
    Column("outcome", Text),
    Column("reason", Text),
    Column("detail", Text),
    Column("interaction_pks", ARRAY(BigInteger), nullable=False, server_default="{}"),
    Column("emptied_at", TIME),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("run_after", TIME, nullable=False, server_default=func.now()),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("lease_owner", Text),
    Column("leased_until", TIME),
    Column("last_error", Text),
    Column("finished_at", TIME),
    UniqueConstraint("system", "trace_id"),
)
Index("ix_traces_claim", traces.c.run_after, traces.c.id, postgresql_where=text("state = 'waiting'"))
Index("ix_traces_running", traces.c.leased_until, postgresql_where=text("state = 'running'"))
Index("ix_traces_open", traces.c.app, traces.c.first_at, postgresql_where=text("state <> 'done'"))
Index("ix_traces_closed", traces.c.app, traces.c.finished_at, postgresql_where=text("state = 'done'"))
Index("ix_traces_finished", traces.c.finished_at, postgresql_where=text("state = 'done'"))
Index(
    "ix_traces_kept",
    traces.c.finished_at,
    postgresql_where=text("state = 'done' AND emptied_at IS NULL"),
)

trace_pieces = Table(
    "trace_pieces",
    METADATA,
    Column("trace_pk", BigInteger, ForeignKey("traces.id", ondelete="CASCADE")),
    Column("topic", Text),
    Column("partition", Integer),
    Column("incarnation", Integer),
    Column("record_offset", BigInteger),
    Column("trace_id", Text),
    Column("within", Text),
    Column("adapter", Text, nullable=False),
    Column("steps", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("broker_time", TIME),
    Column("value_bytes", Integer, nullable=False),
    Column("key", LargeBinary),
    Column("headers", JSONB(none_as_null=True)),
    PrimaryKeyConstraint("trace_pk", "topic", "partition", "incarnation", "record_offset", "trace_id"),
)

# Keys that belong to the trace of another key.
trace_aliases = Table(
    "trace_aliases",
    METADATA,
    Column("system", Text),
    Column("trace_id", Text),
    Column("trace_pk", BigInteger, ForeignKey("traces.id", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("system", "trace_id"),
    Index(None, "trace_pk"),
)
