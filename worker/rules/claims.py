"""Taking a partition over: what a worker asks of the database, and where it then stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LossReason(StrEnum):
    """Why messages will never be read: the broker has deleted them, or their topic was deleted."""

    RETENTION = "retention"
    TOPIC_RECREATED = "topic_recreated"


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker was given a partition by its group and wants to write it.

    ``owner`` is unique to the process, ``generation`` the group's. ``first_offset`` is where a partition begins that
    was never read, ``beginning_offset`` the first that the broker still has. ``topic_id`` changes when a topic is
    deleted and created again; None if the broker tells none. ``insists`` takes the partition also from an owner of a
    later generation, as there is when a consumer group begins anew.
    """

    topic: str
    partition: int
    owner: str
    generation: int
    first_offset: int
    beginning_offset: int
    topic_id: str | None = None
    insists: bool = False


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """The offsets from ``from_offset`` up to but not including ``to_offset`` were not read and cannot be any more."""

    from_offset: int
    to_offset: int
    reason: LossReason


@dataclass(frozen=True, slots=True)
class Position:
    """Where a claimed partition goes on, in which incarnation of its topic, and what was skipped just now."""

    next_offset: int
    incarnation: int = 0
    lost: LostOffsets | None = None
