"""The books of the topics, and where their partitions stand."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from worker.store.tables.metadata import METADATA, TIME

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
    Column("broker_time", TIME),
    Column("settled_at", TIME, nullable=False, server_default=func.now()),
    Column("results", Integer),
    PrimaryKeyConstraint("topic", "partition", "incarnation", "record_offset"),
)
Index("ix_ledger_settled_at", ledger.c.settled_at, postgresql_using="brin")
Index(None, ledger.c.interaction_pk, postgresql_where=ledger.c.interaction_pk.is_not(None))
Index("ix_ledger_dead_letters", ledger.c.settled_at, postgresql_where=ledger.c.outcome == "dead_lettered")

_PLACE = ("topic", "partition", "incarnation", "record_offset")

ledger_items = Table(
    "ledger_items",
    METADATA,
    Column("topic", Text),
    Column("partition", Integer),
    Column("incarnation", Integer),
    Column("record_offset", BigInteger),
    Column("item", Integer),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("detail", Text),
    Column("interaction_pk", BigInteger, ForeignKey("interactions.id", ondelete="SET NULL")),
    Column("settled_at", TIME, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint(*_PLACE, "item"),
    ForeignKeyConstraint(_PLACE, [ledger.c[name] for name in _PLACE], ondelete="CASCADE"),
)
Index("ix_ledger_items_settled_at", ledger_items.c.settled_at, postgresql_using="brin")
Index(None, ledger_items.c.interaction_pk, postgresql_where=ledger_items.c.interaction_pk.is_not(None))
Index(
    "ix_ledger_items_dead_letters",
    ledger_items.c.settled_at,
    postgresql_where=ledger_items.c.outcome == "dead_lettered",
)

partition_offsets = Table(
    "partition_offsets",
    METADATA,
    Column("topic", Text),
    Column("partition", Integer),
    Column("next_offset", BigInteger, nullable=False),
    Column("end_offset", BigInteger),
    Column("generation", Integer, nullable=False, server_default="-1"),
    Column("owner", Text, nullable=False, server_default=""),
    Column("last_broker_time", TIME),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    Column("incarnation", Integer, nullable=False, server_default="0"),
    Column("topic_id", Text),
    Column("vanished_at", TIME),
    Column("batch_attempts", Integer, nullable=False, server_default="0"),
    Column("offset_attempts", Integer, nullable=False, server_default="0"),
    Column("consumer_group", Text),
    Column("end_asked_at", TIME),
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
    Column("to_offset", BigInteger),
    Column("reason", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("noticed_at", TIME, nullable=False, server_default=func.now()),
)
