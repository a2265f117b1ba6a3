"""What must have become of every record, from what lies in the topic and what each message was made to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.soak.messages import Kind, Message, number_of
from worker.records import Record

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class Revision:
    """One content of an interaction, and the record that brought it first."""

    message: Message
    place: Place


@dataclass(slots=True)
class Expectation:
    """``outcomes`` of every record; ``revisions`` of every interaction in their order; ``poison`` by its place.

    ``missing`` are the numbers of messages that are not in the topic, ``moved`` the places at which the broker has
    another message than it acknowledged there.
    """

    outcomes: dict[Place, str] = field(default_factory=dict)
    revisions: dict[str, list[Revision]] = field(default_factory=dict)
    poison: dict[Place, Record] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    moved: list[Place] = field(default_factory=list)

    @property
    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition that has any."""
        ends: dict[int, int] = {}
        for partition, offset in self.outcomes:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        return ends


def expect(records: Iterable[Record], sent: Mapping[int, Message], places: Mapping[Place, int]) -> Expectation:
    """Work it out. ``sent`` has the messages by number, ``places`` what the broker acknowledged.

    A message may lie in the topic twice, when the first acknowledgement got lost; its content counts once.
    """
    found = Expectation()
    numbers: dict[Place, int | None] = {}
    for record in records:
        place = (record.partition, record.offset)
        numbers[place] = number_of(record.headers)
        found.outcomes[place] = _outcome(found, record, place, sent[numbers[place] or 0])
    found.missing = sorted(sent.keys() - set(numbers.values()))
    found.moved = sorted(place for place, number in places.items() if numbers.get(place) != number)
    return found


def _outcome(found: Expectation, record: Record, place: Place, message: Message) -> str:
    if message.kind is Kind.POISON:
        found.poison[place] = record
        return message.outcome
    known = found.revisions.setdefault(str(message.interaction_id), [])
    if any(revision.message.exchange == message.exchange for revision in known):
        return "skipped:duplicate"
    known.append(Revision(message, place))
    assert message.exchange is not None
    return "scored" if message.exchange.passages else "skipped:no_passages"
