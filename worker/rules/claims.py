"""Taking a partition over: what a worker asks of the database, and where it then stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class LossReason(StrEnum):
    """Why messages will never be read: the broker has deleted them, or their topic was deleted."""

    RETENTION = "retention"
    TOPIC_RECREATED = "topic_recreated"


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker was given a partition by its group and wants to write it.

    ``owner`` is unique to the process, ``generation`` the group's. ``first_offset`` is where the partition begins if
    nothing of its topic was ever claimed, and ``first_offsets`` says the same of every partition that the topic has,
    this one among them; empty if they are not known. ``beginning_offset`` is the first that the broker still has: there
    a partition begins that appears later. ``topic_id`` changes when a topic is deleted and created again; None if the
    broker tells none. ``insists`` takes the partition also from an owner of a later generation, as there is when a
    consumer group begins anew. ``consumer_group`` is the one that gave the partition; None is any.
    """

    topic: str
    partition: int
    owner: str
    generation: int
    first_offset: int
    beginning_offset: int
    topic_id: str | None = None
    insists: bool = False
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    consumer_group: str | None = None


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """The offsets from ``from_offset`` up to but not including ``to_offset`` were not read and cannot be any more.

    None: how far they went is not known, since the topic is gone.
    """

    from_offset: int
    to_offset: int | None
    reason: LossReason


@dataclass(frozen=True, slots=True)
class Position:
    """Where a claimed partition goes on, in which incarnation of its topic, and what was skipped just now.

    ``vanished`` are the partitions that went with the topic's last incarnation, as was found just now, each with what
    was lost with it. ``attempts`` is how many batches were begun there since one was settled to its end: one that ended
    its worker counts again with each attempt.
    """

    next_offset: int
    incarnation: int = 0
    lost: LostOffsets | None = None
    vanished: Mapping[int, LostOffsets] = field(default_factory=dict)
    attempts: int = field(default=0, compare=False)
