"""The messages of a soak: good exchanges, repeats and revisions of earlier ones, and poison."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from gasp_core.grounding import Exchange, Passage
from tests.exchanges import exchange
from tests.fixtures.bad_inputs import BAD_INPUTS, Headers

APP = "museums"
NUMBER_HEADER = "soak-number"
# Bytes that are no text, which a dead letter must bring along as they are.
ODD_HEADER = ("soak-trace", b"\xff\x00\xfe")
POISON_EVERY = 100
POISON = tuple(item for item in BAD_INPUTS if item.is_dead_letter)
# Words of the texts, none of which may be in a log.
FRAGMENTS = ("museum of", "opens at", "twelve euros", "penguins", "was amended", "amplifier", "warranty", "Brellow")
# Numbers of the messages of transactions that are aborted, which nobody may ever read.
ABORTED_FROM = 1_000_000_000
# Repeats are of the last so many exchanges: in the same batch, in the next, or long settled.
RECENT = 300


class Kind(StrEnum):
    """What a message is."""

    FRESH = "fresh"
    UNFOUNDED = "unfounded"  # without passages: skipped, and its sentences listed
    REPEATED = "repeated"
    REVISED = "revised"
    POISON = "poison"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it is sent.

    ``outcome`` is what must become of it: ``scored``, ``skipped:<reason>`` or the reason of a dead letter. All
    messages of one interaction have the same key, hence the same partition and a settled order.
    """

    number: int
    kind: Kind
    key: bytes
    value: bytes | None
    headers: Headers
    outcome: str
    interaction_id: str | None = None
    exchange: Exchange | None = None


def messages(seed: int) -> Iterator[Message]:
    """The messages of a seed, without end; one in a hundred is poison, of every kind in turn."""
    chance = random.Random(seed)
    recent: deque[Message] = deque(maxlen=RECENT)
    for number in count():
        if number % POISON_EVERY == POISON_EVERY // 2:
            yield _poison(number)
            continue
        message = _good(number, chance.random(), chance.choice(recent) if recent else None)
        if message.kind is not Kind.REPEATED:
            recent.append(message)
        yield message


def aborted() -> Iterator[Message]:
    """Messages for transactions that are aborted, without end: good exchanges, and every tenth is poison."""
    for number in count(ABORTED_FROM):
        yield _poison(number) if number % 10 == 0 else _message(number, Kind.FRESH, exchange(number))


def _good(number: int, dice: float, earlier: Message | None) -> Message:
    if earlier is not None and dice < 0.04:
        headers = _headers(number)
        return replace(earlier, number=number, kind=Kind.REPEATED, headers=headers, outcome="skipped:duplicate")
    if earlier is not None and dice < 0.08:
        return _revised(number, earlier)
    if dice < 0.1:
        return _message(number, Kind.UNFOUNDED, {**exchange(number), "passages": []})
    return _message(number, Kind.FRESH, exchange(number))


def _revised(number: int, earlier: Message) -> Message:
    row = json.loads(earlier.value or b"")
    return _message(number, Kind.REVISED, {**row, "answer": f"{row['answer']} This was amended as case {number}."})


def _message(number: int, kind: Kind, row: dict[str, object]) -> Message:
    value = json.dumps(row).encode()
    logged = json.loads(value)
    found = Exchange(
        logged["question"], tuple(Passage(one["id"], one["text"]) for one in logged["passages"]), logged["answer"]
    )
    interaction_id = str(logged["interaction_id"])
    return Message(
        number=number,
        kind=kind,
        key=interaction_id.encode(),
        value=value,
        headers=_headers(number),
        outcome="scored" if found.passages else "skipped:no_passages",
        interaction_id=interaction_id,
        exchange=found,
    )


def _poison(number: int) -> Message:
    item = POISON[number // POISON_EVERY % len(POISON)]
    key = f"poison-{number}".encode()
    headers = (*_headers(number), ODD_HEADER, *item.headers)
    return Message(number, Kind.POISON, key, item.value, headers, item.outcome)


def _headers(number: int) -> Headers:
    return ((NUMBER_HEADER, str(number).encode()),)


def number_of(headers: Headers) -> int | None:
    """The number that a record of ours carries."""
    found = dict(headers).get(NUMBER_HEADER)
    return None if found is None else int(found)
