"""Replay of dead letters: the messages in them back into the topic, as they were, with their history in headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from schemas.replay import Replay
from worker.broker.errors import BrokerUnavailable, RecordTooLarge, SendFailed
from worker.broker.sink import Place, RecordSink
from worker.dlq.letters import Letter
from worker.dlq.originals import Obstacle, Originals

FLUSH_EVERY = 500
FLUSH_BYTES = 16 * 1024 * 1024
FLUSH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ReplayMessage:
    """What is sent for a letter."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class Tally:
    """What became of the letters so far. ``unconfirmed`` ones were sent and may have arrived.

    ``sent`` counts all that were sent, ``elsewhere`` those of them that went to another topic than most, by topic.
    """

    sent: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)
    unconfirmed: int = 0
    left: Counter[Obstacle] = field(default_factory=Counter)
    examples: dict[Obstacle, Place] = field(default_factory=dict)

    def count(self, topic: str, homes: Homes) -> None:
        """Count a letter whose message went to a topic."""
        self.sent += 1
        if topic != homes.usual:
            self.elsewhere[topic] += 1

    def leave(self, place: Place, obstacle: Obstacle) -> None:
        """Count a letter that is not sent."""
        self.left[obstacle] += 1
        self.examples.setdefault(obstacle, place)


@dataclass(frozen=True, slots=True)
class Replayer:
    """Decides on each letter. ``newest`` is what ``newest_letters`` found in the whole dead-letter topic."""

    originals: Originals
    newest: Mapping[Place, Place]
    max_message_bytes: int
    max_replays: int

    def prepare(self, letter: Letter) -> ReplayMessage | Obstacle:
        """The message to send, or why none is. Raises BrokerUnavailable, BrokerMisconfigured."""
        if self.newest.get(letter.first_place, letter.place) != letter.place:
            return Obstacle.SUPERSEDED
        if letter.replays >= self.max_replays:
            return Obstacle.TOO_OFTEN
        # Before the bytes are fetched: they may be as large as the topic takes, as headers that had no room here are.
        if letter.facts.size_bytes > self.max_message_bytes or not letter.facts.headers_attached:
            return Obstacle.TOO_LARGE
        value = self.originals.value(letter)
        return value if isinstance(value, Obstacle) else ReplayMessage(letter.record.key, value, _headers(letter))


@dataclass(frozen=True, slots=True)
class Homes:
    """Where messages go: back to the topic that they came from if that is one of ``others``, else to ``usual``.

    Not to whatever topic a letter names: it is a claim that anybody may write.
    """

    usual: str
    others: frozenset[str] = frozenset()

    def of(self, letter: Letter) -> str:
        """The topic that the letter's message is sent to."""
        return letter.facts.topic if letter.facts.topic in self.others else self.usual


class Sender:
    """Sends messages and counts one as sent when the broker has acknowledged it. Use it in a ``with``.

    Everything raises BrokerUnavailable or BrokerMisconfigured, once what was sent before is counted.
    """

    def __init__(self, sink: RecordSink, homes: Homes, tally: Tally) -> None:
        self._sink = sink
        self._homes = homes
        self._tally = tally
        self._under_way: list[_UnderWay] = []

    def send(self, letter: Letter, message: ReplayMessage) -> None:
        """Send it; now and then wait for the acknowledgements."""
        topic = self._homes.of(letter)
        try:
            sent = self._sink.send(topic, message.value, key=message.key, headers=message.headers)
        except RecordTooLarge:
            self._tally.leave(letter.place, Obstacle.TOO_LARGE)
            return
        self._under_way.append(_UnderWay(letter.place, topic, len(message.value or b""), sent))
        if len(self._under_way) >= FLUSH_EVERY or sum(one.size for one in self._under_way) >= FLUSH_BYTES:
            self.confirm()

    def confirm(self) -> None:
        """Wait until what is under way is acknowledged or refused."""
        try:
            # Each future knows its own refusal.
            with suppress(SendFailed):
                self._sink.flush(FLUSH_TIMEOUT_S)
        finally:
            error = self._count()
        if error is not None:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.confirm()
        else:
            self._count()

    def _count(self) -> BaseException | None:
        """Count what is under way without waiting; gives the first error that is more than one message's own."""
        under_way, self._under_way = self._under_way, []
        first: BaseException | None = None
        for one in under_way:
            error = one.sent.exception() if one.sent.done() else BrokerUnavailable("not acknowledged yet")
            if error is None:
                self._tally.count(one.topic, self._homes)
            elif isinstance(error, RecordTooLarge):
                self._tally.leave(one.place, Obstacle.TOO_LARGE)
            else:
                self._tally.unconfirmed += isinstance(error, BrokerUnavailable)
                first = first or error
        return first


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A letter whose message of so many bytes was given to the sink, and what will say whether the broker has it."""

    place: Place
    topic: str
    size: int
    sent: Future[Place]


def replay_letters(
    letters: Iterable[Letter],
    prepare: Callable[[Letter], ReplayMessage | Obstacle],
    send: Callable[[Letter, ReplayMessage], None],
    tally: Tally,
    limit: int | None = None,
) -> None:
    """Prepare each letter and send it, or count why not; end when so many as ``limit`` were sent."""
    sent = 0
    for letter in letters:
        if limit is not None and sent >= limit:
            break
        prepared = prepare(letter)
        if isinstance(prepared, Obstacle):
            tally.leave(letter.place, prepared)
        else:
            send(letter, prepared)
            sent += 1


def newest_letters(letters: Iterable[Letter]) -> dict[Place, Place]:
    """Where the newest letter lies of each message that was replayed and died again; by the message's first place.

    Older letters of these messages must not be sent: each replay would double what the next one finds.
    """
    newest: dict[Place, tuple[int, datetime, Place]] = {}
    for letter in letters:
        if letter.replay:
            rank = (letter.replays, letter.facts.rejected_at, letter.place)
            newest[letter.first_place] = max(newest.get(letter.first_place, rank), rank)
    return {first: place for first, (_, _, place) in newest.items()}


def _headers(letter: Letter) -> tuple[tuple[str, bytes | None], ...]:
    first = letter.first_place
    known = letter.replay or letter.facts
    replay = Replay(
        count=letter.replays + 1,
        topic=first.topic,
        partition=first.partition,
        offset=first.offset,
        timestamp_ms=known.timestamp_ms,
        reason=letter.facts.reason,
        replayed_at=datetime.now(UTC),
    )
    return replay.to_headers(letter.headers)
