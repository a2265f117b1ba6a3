"""What would be read from messages, before anything runs: exchanges, and why the other messages give none."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from schemas.decoding import Decoded, Rejected, Skipped, decode_exchange, decode_payload
from schemas.encodings.schema import NO_SCHEMAS, Schemas
from schemas.interaction import Interaction
from schemas.repair import Repair
from schemas.traces.assembly import assemble
from schemas.traces.piece import Piece, TraceKey, uppermost_keys
from worker.settings.reading import Reading
from worker.terminal.inputs import Message

# More traces than that are not held open at a time; the one that was begun first is closed then.
MAX_OPEN_TRACES = 10_000

SKIPPED = "skipped"
DEAD_LETTERED = "dead_lettered"


@dataclass(frozen=True, slots=True)
class ReadExchange:
    """An exchange that would be scored. ``sources`` are the places of its messages.

    ``is_complete`` is False for one that a worker would close by time-out.
    """

    interaction: Interaction
    format: str
    sources: tuple[str, ...]
    is_complete: bool = True
    has_own_id: bool = True

    @property
    def missing(self) -> tuple[str, ...]:
        """What the log does not say of it."""
        logged = self.interaction
        said = {
            "question": bool(logged.question.strip()),
            "passages": any(passage.text.strip() for passage in logged.passages),
            "answer": bool(logged.answer.strip()),
            "id": self.has_own_id,
            "time": logged.occurred_at is not None,
            "end of the trace": self.is_complete,
        }
        return tuple(name for name, there in said.items() if not there)


@dataclass(frozen=True, slots=True)
class ReadNothing:
    """What gives no exchange: a message, or the messages of a trace. ``detail`` holds no text of messages."""

    outcome: str
    reason: str
    detail: str
    sources: tuple[str, ...]


Inspected = ReadExchange | ReadNothing


@dataclass(slots=True)
class _OpenTrace:
    pieces: list[Piece] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


class Inspection:
    """Reads messages in order as a worker would, and puts traces together at the end. Scores and writes nothing.

    ``topic`` says where they come from, if they do from one.
    """

    def __init__(self, settings: Reading, schemas: Schemas = NO_SCHEMAS, topic: str | None = None) -> None:
        self._settings = settings
        self._topic = topic
        self._schemas = schemas
        self._open: OrderedDict[TraceKey, _OpenTrace] = OrderedDict()
        self.messages = 0

    def read(self, messages: Iterable[Message]) -> Iterator[Inspected]:
        """What each message gives, then what the traces give that lie in several. A message may give several."""
        for message in messages:
            self.messages += 1
            yield from self._message(message)
        self._join()
        while self._open:
            yield from self._close()

    def _message(self, message: Message) -> Iterator[Inspected]:
        if message.problem is not None:
            yield ReadNothing(DEAD_LETTERED, message.problem, "", (message.place,))
            return
        reading = decode_payload(
            message.value,
            message.headers,
            max_bytes=self._settings.max_message_bytes,
            default_app=self._settings.default_app,
            received_at=datetime.now(UTC),
            has_key=message.key is not None,
            format_name=self._settings.format_of(self._topic),
            schemas=self._schemas,
        )
        for result in reading.results:
            yield _found(result, (message.place,))
        for piece in reading.pieces:
            trace = self._open.setdefault(piece.trace, _OpenTrace())
            trace.pieces.append(piece)
            trace.sources.append(message.place)
        if len(self._open) > MAX_OPEN_TRACES:
            self._join()
        while len(self._open) > MAX_OPEN_TRACES:
            yield from self._close()

    def _join(self) -> None:
        """Put the traces together that lie within others."""
        pieces = [piece for trace in self._open.values() for piece in trace.pieces]
        if all(piece.within is None for piece in pieces):
            return
        keys = uppermost_keys(pieces)
        apart, self._open = self._open, OrderedDict()
        for key, trace in apart.items():
            whole = self._open.setdefault(keys.get(key, key), _OpenTrace())
            whole.pieces += trace.pieces
            whole.sources += trace.sources

    def _close(self) -> Iterator[Inspected]:
        """Assemble the trace that was begun first."""
        key, trace = self._open.popitem(last=False)
        sources = tuple(dict.fromkeys(trace.sources))
        assembly = assemble((step for piece in trace.pieces for step in piece.steps), key.id)
        if assembly.reason is not None:
            yield ReadNothing(SKIPPED, assembly.reason, f"trace of {len(sources)} messages", sources)
        for native in assembly.exchanges:
            decoded = decode_exchange(
                native,
                trace.pieces[0].adapter,
                default_app=self._settings.default_app,
                received_at=datetime.now(UTC),
            )
            yield _found(decoded, sources, is_complete=assembly.is_complete)


def _found(result: Decoded | Rejected | Skipped, sources: tuple[str, ...], *, is_complete: bool = True) -> Inspected:
    if isinstance(result, Rejected):
        return ReadNothing(DEAD_LETTERED, result.reason, result.detail, sources)
    if isinstance(result, Skipped):
        return ReadNothing(SKIPPED, result.reason, "", sources)
    has_own_id = Repair.ID_DERIVED not in result.repairs
    return ReadExchange(result.interaction, result.adapter, sources, is_complete, has_own_id)


class Summary:
    """Counts by format and by reason."""

    def __init__(self) -> None:
        self.exchanges: Counter[str] = Counter()
        self.missing: Counter[tuple[str, str]] = Counter()
        self.nothing: Counter[tuple[str, str, str]] = Counter()

    def count(self, found: Inspected) -> None:
        """Add one."""
        if isinstance(found, ReadNothing):
            self.nothing[found.outcome, found.reason, found.detail] += 1
            return
        self.exchanges[found.format] += 1
        for name in found.missing:
            self.missing[found.format, name] += 1
