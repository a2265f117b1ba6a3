"""What one message says of a trace: some of its steps, of which others may lie in any other message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.traces.step import Step


@dataclass(frozen=True, slots=True)
class TraceKey:
    """What the messages of one trace have in common: the system whose ids these are (otlp, langsmith …), and the id."""

    system: str
    id: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Steps of one trace, at least one, in one message. ``adapter`` is the format that they were read from."""

    trace: TraceKey
    steps: tuple[Step, ...]
    adapter: str

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
