"""What one message says of a trace: some of its steps, of which others may lie in any other message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.traces.step import Step


@dataclass(frozen=True, slots=True)
class TraceKey:
    """What the messages of one trace have in common: the system whose ids these are (otlp, langsmith …), and the id."""

    system: str
    id: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Steps of one trace, at least one, in one message. ``adapter`` is the format that they were read from.

    Some logs do not name the trace but the step above alone. Their pieces have their own step's id for a key, and
    ``within`` is the id, in the same system, of the key that they lie below: the pieces of both are one trace, and
    ``uppermost_keys`` says under which key.
    """

    trace: TraceKey
    steps: tuple[Step, ...]
    adapter: str
    within: str | None = None

    @property
    def ends(self) -> bool:
        """Whether the root of the trace is among them and is over: what comes later are stragglers."""
        return any(step.is_root and step.has_ended for step in self.steps)

    @property
    def app(self) -> str | None:
        """The first application that a step names."""
        return next((step.app for step in self.steps if step.app), None)


def pieces_of(system: str, steps: Iterable[tuple[str, Step]], adapter: str) -> tuple[Piece, ...]:
    """Return a piece for each trace, in order of their first steps; ``steps`` are trace ids with a step of theirs."""
    traces: dict[str, list[Step]] = {}
    for trace_id, step in steps:
        traces.setdefault(trace_id, []).append(step)
    return tuple(Piece(TraceKey(system, trace_id), tuple(those), adapter) for trace_id, those in traces.items())


def uppermost_keys(pieces: Iterable[Piece]) -> dict[TraceKey, TraceKey]:
    """Return for each key the one of the whole trace: the uppermost that is known.

    Keys that lie within each other in a circle are one trace, under the least of them. Takes linear time.
    """
    listed = list(pieces)
    above = {piece.trace: TraceKey(piece.trace.system, piece.within) for piece in listed if piece.within is not None}
    known: dict[TraceKey, TraceKey] = {}
    return {piece.trace: _uppermost(piece.trace, above, known) for piece in listed}


def _uppermost(key: TraceKey, above: Mapping[TraceKey, TraceKey], known: dict[TraceKey, TraceKey]) -> TraceKey:
    """Walk up to the last key, or to one that was walked from before; remembers the end for all on the way."""
    way: dict[TraceKey, None] = {}
    while key not in known and key not in way and key in above:
        way[key] = None
        key = above[key]
    if key in way:
        circle = list(way)[list(way).index(key) :]
        key = min(circle, key=lambda one: one.id)
    end = known.get(key, key)
    known.update(dict.fromkeys(way, end))
    return end
