"""What must have become of every record, from what lies in the topic and what each message was made to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.soak.messages import Kind, Message, number_of
from worker.rules.records import Record

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class Revision:
    """One content of an interaction, and the record that brought it first.

    ``newest`` is the time and offset of the newest that brought it; the largest of an interaction's is current.
    """

    message: Message
    place: Place
    newest: tuple[int, int]


@dataclass(slots=True)
class Expectation:
    """``outcomes`` of the settled records; ``revisions`` of every interaction in their order; ``poison`` by its place.

    ``unsettled`` are the records that no partition has passed yet. ``missing`` are the numbers of messages that are
    not in the topic, ``moved`` the places at which the broker has another message than it acknowledged there.
    """

    outcomes: dict[Place, str] = field(default_factory=dict)
    revisions: dict[str, list[Revision]] = field(default_factory=dict)
    poison: dict[Place, Record] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    moved: list[Place] = field(default_factory=list)
    unsettled: list[Place] = field(default_factory=list)


def expect(
    records: Iterable[Record],
    sent: Mapping[int, Message],
    places: Mapping[Place, int],
    positions: Mapping[int, int],
) -> Expectation:
    """Work it out, from records that are in order within their partitions.

    ``sent`` has the messages by number, ``places`` what the broker acknowledged, ``positions`` the next offset of
    each partition: a record before it must have left its traces, the others may wait for a worker.
    A message may lie in the topic twice, when the first acknowledgement got lost; its content counts once.
    """
    found = Expectation()
    numbers: dict[Place, int | None] = {}
    for record in records:
        place = (record.partition, record.offset)
        numbers[place] = number_of(record.headers)
        message = sent[numbers[place] or 0]
        if message.kind is Kind.POISON:
            # Also of one that is not settled: its dead letter goes out first.
            found.poison[place] = record
        if record.offset < positions.get(record.partition, 0):
            found.outcomes[place] = _outcome(found, record, message)
        else:
            found.unsettled.append(place)
    found.missing = sorted(sent.keys() - set(numbers.values()))
    found.moved = sorted(place for place, number in places.items() if numbers.get(place) != number)
    return found


def _outcome(found: Expectation, record: Record, message: Message) -> str:
    if message.kind is Kind.POISON:
        return message.outcome
    known = found.revisions.setdefault(str(message.interaction_id), [])
    came = (record.timestamp_ms or 0, record.offset)
    for revision in known:
        if revision.message.exchange == message.exchange:
            revision.newest = max(revision.newest, came)
            return "skipped:duplicate"
    known.append(Revision(message, (record.partition, record.offset), came))
    assert message.exchange is not None
    return "scored" if message.exchange.passages else "skipped:no_passages"
