"""When and where content came, and which of two deliveries is the newer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from schemas.decoding import Decoded
from schemas.replay import Replay
from worker.rules.records import Record, moment
from worker.rules.settlement import Settlement


@dataclass(frozen=True, slots=True)
class Delivery:
    """One time that content came.

    ``time`` is when the exchange took place: what the message says, else when the broker had it (``received_at``),
    else when it is stored. ``item`` counts what a message holds from 1. Of a message that was replayed from the dead
    letters, ``received_at`` and the place are those that it had at first. What was made of a trace has the place of its
    root, and the ``version`` of the trace that it was made of.
    """

    time: datetime
    received_at: datetime | None
    topic: str
    partition: int
    incarnation: int
    offset: int
    item: int = 1
    trace_pk: int | None = None
    version: int = 0

    def is_newer_than(self, other: Delivery) -> bool:
        """Whether this one, which came after the other, is also of a later exchange.

        Of two versions of a trace the one that more was known of is, whatever the times in it.
        The later time is; at the same time what lies further back in the same partition or message; of two partitions
        what the broker had later. Where nothing tells them apart, what came later is.
        """
        if self.trace_pk is not None and self.trace_pk == other.trace_pk:
            return self.version > other.version
        if self.time != other.time:
            return self.time > other.time
        if (self.topic, self.partition) == (other.topic, other.partition):
            return (self.incarnation, self.offset, self.item) > (other.incarnation, other.offset, other.item)
        if self.received_at is None or other.received_at is None:
            return True
        return self.received_at >= other.received_at

    def as_row(self) -> dict[str, object]:
        """For a column of JSON."""
        return {
            "time": self.time.isoformat(),
            "received_at": None if self.received_at is None else self.received_at.isoformat(),
            "topic": self.topic,
            "partition": self.partition,
            "incarnation": self.incarnation,
            "offset": self.offset,
            **({"item": self.item} if self.item > 1 else {}),
            **({} if self.trace_pk is None else {"trace_pk": self.trace_pk, "version": self.version}),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read what ``as_row`` wrote."""
        received_at = None if row["received_at"] is None else datetime.fromisoformat(row["received_at"])
        place = (row["topic"], row["partition"], row["incarnation"], row["offset"])
        rest = (row.get("item", 1), row.get("trace_pk"), row.get("version", 0))
        return cls(datetime.fromisoformat(row["time"]), received_at, *place, *rest)


def first_received_at(record: Record) -> datetime | None:
    """When the broker had the record; of one that was replayed from the dead letters, when it had it at first."""
    replay = Replay.from_headers(record.headers)
    return (replay and moment(replay.timestamp_ms)) or record.broker_time


def delivery_of(settlement: Settlement, decoded: Decoded, incarnation: int, now: datetime) -> Delivery:
    """The delivery that a settled exchange is. ``now`` stands in for a time that neither message nor broker know.

    In which incarnation of its topic a replayed message lay at first is not known; it is taken for the present one.
    """
    record, origin = settlement.record, settlement.origin
    received_at = first_received_at(record)
    first = Replay.from_headers(record.headers) or record
    time = decoded.interaction.occurred_at or received_at or now
    delivery = Delivery(time, received_at, first.topic, first.partition, incarnation, first.offset, settlement.item)
    return delivery if origin is None else replace(delivery, trace_pk=origin.trace_pk, version=origin.version)
