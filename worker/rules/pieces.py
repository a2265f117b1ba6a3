"""What is kept of traces whose steps lie in many messages, and what becomes of each piece of one. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

import orjson

from schemas.interaction import MAX_APP_CHARS, MAX_ID_CHARS
from schemas.reject_reason import RejectReason
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Step
from worker.rules.records import Record

# Of one trace. The largest that agents are known to write have some hundred steps.
MAX_STEPS = 5_000
MAX_BYTES = 8 * 1024 * 1024


class ClosedBy(StrEnum):
    """Why a trace is made into exchanges.

    Its root was over and all that it names was there; or nothing more came for too long; or its app had too many open
    ones; or it is larger than any may be, and is refused.
    """

    COMPLETE = "complete"
    TIME_OUT = "time_out"
    TOO_MANY_OPEN = "too_many_open"
    TOO_LARGE = "too_large"


class PieceSkip(StrEnum):
    """Why a piece is not kept: its trace is too large, or was closed so long ago that its other pieces are gone."""

    TRACE_TOO_LARGE = "trace_too_large"
    LATE_PIECE = "late_piece"


@dataclass(frozen=True, slots=True)
class TracePolicy:
    """When a trace is due after its last piece: soon, once its root was seen, and else after a time-out."""

    grace: timedelta = timedelta(seconds=10)
    time_out: timedelta = timedelta(seconds=600)


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """A piece that is kept, with the message in which it came, without its value.

    Of a message whose key and headers were too large to be kept beside the piece, ``has_around`` is False.
    """

    record: Record
    incarnation: int
    trace: TraceKey
    within: str | None
    adapter: str
    written: str
    has_around: bool

    def steps(self) -> list[Step]:
        """What the message says."""
        return [Step.from_json(step) for step in orjson.loads(self.written)]

    @property
    def order(self) -> tuple[int, str, int, int, int]:
        """Of two pieces, the one that the broker had first has the lower; the same in every run."""
        record = self.record
        return (record.timestamp_ms or 0, record.topic, record.partition, self.incarnation, record.offset)


TraceName = tuple[str, str]
"""System and id of a trace."""


@dataclass(frozen=True, slots=True)
class TracePiece:
    """What one message says of one trace, as it is kept: its steps as a JSON array of ``Step.to_json``, ``size`` bytes.

    ``digest`` tells pieces that say the same. With ``has_root`` the uppermost step of the trace is among them. If it
    lies ``within`` a key of the same system, the pieces of both are one trace.
    """

    trace: TraceKey
    adapter: str
    steps: str
    n_steps: int
    digest: bytes
    has_root: bool
    app: str | None
    size: int
    within: str | None = None

    @property
    def name(self) -> TraceName:
        """The key that it came under."""
        return (self.trace.system, self.trace.id)

    @property
    def names(self) -> tuple[TraceName, ...]:
        """Its own key, and the one that it lies within."""
        return (self.name,) if self.within is None else (self.name, (self.trace.system, self.within))


@dataclass(frozen=True, slots=True)
class UnusablePiece:
    """A piece that no trace can take, alone as it is. ``detail`` names the rule that it breaks."""

    reason: RejectReason
    detail: str


def kept_pieces(pieces: Iterable[Piece]) -> tuple[list[TracePiece], list[UnusablePiece]]:
    """The pieces of one message as they are kept, one for each trace, and what is wrong with those that cannot be."""
    together: dict[TraceKey, list[Piece]] = {}
    for piece in pieces:
        together.setdefault(piece.trace, []).append(piece)
    each = [_kept(parts) for parts in together.values()]
    return (
        [piece for piece in each if isinstance(piece, TracePiece)],
        [piece for piece in each if isinstance(piece, UnusablePiece)],
    )


def _kept(parts: Sequence[Piece]) -> TracePiece | UnusablePiece:
    first = parts[0]
    steps = [step for part in parts for step in part.steps]
    within = next((part.within for part in parts if part.within is not None), None)
    if max(len(first.trace.id), len(within or "")) > MAX_ID_CHARS:
        return UnusablePiece(RejectReason.WRONG_SHAPE, f"id of a trace: more than {MAX_ID_CHARS} characters")
    if len(steps) > MAX_STEPS:
        return UnusablePiece(RejectReason.TOO_LARGE, f"{len(steps)} steps of a trace, the limit is {MAX_STEPS}")
    try:
        written = orjson.dumps([step.to_json() for step in steps])
    except orjson.JSONEncodeError:
        return UnusablePiece(RejectReason.WRONG_SHAPE, "steps of a trace: a number of more than 64 bits")
    if len(written) > MAX_BYTES:
        return UnusablePiece(RejectReason.TOO_LARGE, f"{len(written)} bytes of a trace, the limit is {MAX_BYTES}")
    app = next((part.app for part in parts if part.app), None)
    return TracePiece(
        first.trace,
        first.adapter,
        written.decode(),
        len(steps),
        hashlib.sha256(orjson.dumps([first.trace.id, within]) + written).digest(),
        has_root=any(step.is_root for step in steps),
        app=app if app and len(app) <= MAX_APP_CHARS else None,
        size=len(written),
        within=within,
    )


def tops(pieces: Iterable[TracePiece], known: Mapping[TraceName, TraceName]) -> dict[TraceName, TraceName]:
    """For each key of the pieces the name of the whole trace: the uppermost as far as is known.

    ``known`` are the names that keys had before. Takes linear time.
    """
    above = dict(known)

    def top(name: TraceName) -> TraceName:
        way = []
        while name in above:
            way.append(name)
            name = above[name]
        above.update(dict.fromkeys(way, name))
        return name

    listed = list(pieces)
    for piece in listed:
        low, high = top(piece.names[0]), top(piece.names[-1])
        if low != high:
            above[low] = high
    return {name: top(name) for piece in listed for name in piece.names}


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """A trace as it stands. ``digests`` are those of its pieces, of which nothing is left if it ``is_emptied``.

    ``is_refused``: its last closing ended as a dead letter.
    """

    pk: int
    is_closed: bool = False
    is_emptied: bool = False
    is_refused: bool = False
    closed_by: ClosedBy | None = None
    n_steps: int = 0
    size: int = 0
    digests: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class TraceChange:
    """What a batch does to a trace.

    ``added`` are the positions of the pieces that are kept, ``skipped`` those that are not, with the reason. If it
    ``opens`` there is something to be made of it (again); with ``closes_as`` at once.
    """

    added: tuple[int, ...] = ()
    skipped: dict[int, PieceSkip] = field(default_factory=dict)
    opens: bool = False
    closes_as: ClosedBy | None = None
    late: int = 0


def merged(trace: KnownTrace, others: Sequence[KnownTrace]) -> KnownTrace:
    """The trace with the pieces of others that turned out to be parts of it."""
    if trace.is_emptied:
        return trace
    all_of_them = (trace, *others)
    too_large = any(one.closed_by is ClosedBy.TOO_LARGE for one in all_of_them)
    return replace(
        trace,
        closed_by=ClosedBy.TOO_LARGE if too_large else trace.closed_by,
        n_steps=sum(one.n_steps for one in all_of_them),
        size=sum(one.size for one in all_of_them),
        digests=frozenset(digest for one in all_of_them for digest in one.digests),
    )


def change_of(trace: KnownTrace, pieces: Sequence[TracePiece]) -> TraceChange:
    """What these pieces do to the trace, in their order.

    A piece that says what another one said changes nothing, except that it opens a trace again that was refused: so
    a dead letter is replayed.
    """
    change = TraceChange(late=len(pieces) if trace.is_closed else 0)
    known, n_steps, size = set(trace.digests), trace.n_steps, trace.size
    too_large = trace.closed_by is ClosedBy.TOO_LARGE
    for position, piece in enumerate(pieces):
        if too_large:
            change = _skipping(change, position, PieceSkip.TRACE_TOO_LARGE)
        elif trace.is_emptied:
            change = _skipping(change, position, PieceSkip.LATE_PIECE)
        elif piece.digest in known:
            change = replace(change, opens=change.opens or trace.is_refused)
        elif n_steps + piece.n_steps > MAX_STEPS or size + piece.size > MAX_BYTES:
            too_large = True
            change = replace(change, opens=True, closes_as=ClosedBy.TOO_LARGE)
            change = _skipping(change, position, PieceSkip.TRACE_TOO_LARGE)
        else:
            known.add(piece.digest)
            n_steps, size = n_steps + piece.n_steps, size + piece.size
            change = replace(change, opens=True, added=(*change.added, position))
    return change


def _skipping(change: TraceChange, position: int, reason: PieceSkip) -> TraceChange:
    return replace(change, skipped={**change.skipped, position: reason})
