"""When and where content came, and which of two deliveries is the newer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from schemas.decoding import Decoded
from schemas.replay import Replay
from worker.rules.records import Record, moment


@dataclass(frozen=True, slots=True)
class Delivery:
    """One time that content came.

    ``time`` is when the exchange took place: what the message says, else when the broker had it (``received_at``),
    else when it is stored. ``item`` counts what a message holds from 1. Of a message that was replayed from the dead
    letters, ``received_at`` and the place are those that it had at first.
    """

    time: datetime
    received_at: datetime | None
    topic: str
    partition: int
    incarnation: int
    offset: int
    item: int = 1

    def is_newer_than(self, other: Delivery) -> bool:
        """Whether this one, which came after the other, is also of a later exchange.

        The later time is; at the same time what lies further back in the same partition or message; of two partitions
        what the broker had later. Where nothing tells them apart, what came later is.
        """
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
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read what ``as_row`` wrote."""
        received_at = None if row["received_at"] is None else datetime.fromisoformat(row["received_at"])
        place = (row["topic"], row["partition"], row["incarnation"], row["offset"])
        return cls(datetime.fromisoformat(row["time"]), received_at, *place, row.get("item", 1))


def first_received_at(record: Record) -> datetime | None:
    """When the broker had the record; of one that was replayed from the dead letters, when it had it at first."""
    replay = Replay.from_headers(record.headers)
    return (replay and moment(replay.timestamp_ms)) or record.broker_time


def delivery_of(record: Record, decoded: Decoded, incarnation: int, now: datetime, item: int = 1) -> Delivery:
    """The delivery that an exchange of a record is. ``now`` stands in for a time that neither message nor broker know.

    In which incarnation of its topic a replayed message lay at first is not known; it is taken for the present one.
    """
    received_at = first_received_at(record)
    first = Replay.from_headers(record.headers) or record
    time = decoded.interaction.occurred_at or received_at or now
    return Delivery(time, received_at, first.topic, first.partition, incarnation, first.offset, item)
