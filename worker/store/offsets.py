"""How far each partition has been read. The row's ``next_offset`` is the truth; Kafka's own is for lag tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from worker.settlement import Advance
from worker.store.tables import partition_offsets

PartitionKey = tuple[str, int]


def positions(connection: Connection, topic: str) -> dict[int, int]:
    """The next offset of each partition of the topic that has been started."""
    found = select(partition_offsets.c.partition, partition_offsets.c.next_offset).where(
        partition_offsets.c.topic == topic
    )
    return {row.partition: row.next_offset for row in connection.execute(found)}


def start_position(connection: Connection, topic: str, partition: int, next_offset: int) -> int:
    """Begin the partition at ``next_offset`` unless it has begun already; return where it stands."""
    row = {"topic": topic, "partition": partition, "next_offset": next_offset}
    connection.execute(insert(partition_offsets).values(**row).on_conflict_do_nothing())
    return positions(connection, topic)[partition]


def advance_all(
    connection: Connection, advances: Sequence[Advance], broker_times: dict[PartitionKey, datetime]
) -> set[PartitionKey]:
    """Take every step whose ``expected`` still holds; return the partitions where it does not.

    The rows stay locked until the transaction ends, so a second owner waits here and is then refused. The order is
    the same for everyone, so that two owners cannot wait for each other.
    """
    fenced = set()
    for advance in sorted(advances, key=lambda step: (step.topic, step.partition)):
        key = (advance.topic, advance.partition)
        if not _advance(connection, advance, broker_times.get(key)):
            fenced.add(key)
    return fenced


def _advance(connection: Connection, advance: Advance, broker_time: datetime | None) -> bool:
    offsets = partition_offsets.c
    step = (
        update(partition_offsets)
        .where(
            offsets.topic == advance.topic,
            offsets.partition == advance.partition,
            offsets.next_offset == advance.expected,
        )
        .values(
            next_offset=advance.next_offset,
            end_offset=func.coalesce(advance.end_offset, offsets.end_offset),
            generation=advance.generation,
            owner=advance.owner,
            last_broker_time=func.coalesce(broker_time, offsets.last_broker_time),
            updated_at=func.now(),
        )
    )
    return connection.execute(step).rowcount == 1
