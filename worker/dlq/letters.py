"""A dead letter as it lies in its topic, and other records that lie there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from schemas.dead_letter import DeadLetter, original_headers
from schemas.errors import NotADeadLetter
from schemas.reject_reason import RejectReason
from schemas.replay import Replay, without_history
from worker.broker.sink import Place
from worker.broker.unreadable import Unreadable
from worker.rules.records import Record


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. ``replay`` is the last replay of the message in it, None if there was none."""

    record: Record
    facts: DeadLetter
    replay: Replay | None

    @property
    def place(self) -> Place:
        """Where it lies in the dead-letter topic."""
        return Place(self.record.topic, self.record.partition, self.record.offset)

    @property
    def replays(self) -> int:
        """How often the message was replayed before it died this time."""
        return self.replay.count if self.replay else 0

    @property
    def first_place(self) -> Place:
        """Where the message lay before it was ever replayed: the same in all letters of one message."""
        first = self.replay or self.facts
        return Place(first.topic, first.partition, first.offset)

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers that the message was first sent with."""
        headers = original_headers(self.record.headers)
        return without_history(headers) if self.replay else headers

    @property
    def is_by_reference(self) -> bool:
        """Whether the bytes lie in the original topic only. A message that has none is not by reference."""
        has_bytes = self.facts.size_bytes > 0 or self.facts.reason is RejectReason.UNREADABLE
        return not self.facts.value_attached and has_bytes


@dataclass(frozen=True, slots=True)
class Stranger:
    """What lies in the dead-letter topic and is no dead letter: offsets ``offset`` up to ``next_offset``, and why."""

    partition: int
    offset: int
    next_offset: int
    problem: str


def read_letter(item: Record | Unreadable) -> Letter | Stranger:
    """What a scan of the dead-letter topic found. Never raises, whatever the bytes."""
    if isinstance(item, Unreadable):
        return Stranger(item.partition, item.offset, item.next_offset, "cannot be decoded by this client")
    try:
        facts = DeadLetter.from_headers(item.headers)
    except NotADeadLetter as error:
        problem = f"headers lack or spoil {', '.join(error.fields)}"
        return Stranger(item.partition, item.offset, item.offset + 1, problem)
    return Letter(item, facts, Replay.from_headers(original_headers(item.headers)))


def read_letters(items: Iterable[Record | Unreadable]) -> Iterator[Letter | Stranger]:
    """Each of ``items`` in turn, as ``read_letter`` reads it."""
    return (read_letter(item) for item in items)


def only_letters(items: Iterable[Record | Unreadable]) -> Iterator[Letter]:
    """The dead letters among ``items``."""
    return (found for found in read_letters(items) if isinstance(found, Letter))
