"""Traces whose steps come in many messages, as the worker would hand them to the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Step
from tests.integration.store_examples import BROKER_TIME_MS, record
from tests.unit.traces.steps import MILK, TEA, chain, llm, retriever
from worker.rules.pieces import kept_pieces
from worker.rules.settlement import Outcome, Settlement

SYSTEM = "otlp"
# Long enough after the epoch for a time in nanoseconds to be taken for one.
BEGUN_NS = 1_764_496_800_000_000_000


def rag_steps(number: int, *, answer: str = "Tea is drunk hot in the tea room.", app: str = "tea-room") -> list[Step]:
    """The steps of one exchange, each of which may come in a message of its own."""
    at = BEGUN_NS + number * 1_000_000_000
    question = f"How is tea number {number} drunk?"
    return [
        chain("root", at=at, ended_ns=at + 10, question=question, answer=answer, app=app),
        retriever("found", "root", TEA, MILK, at=at + 1, question="tea"),
        llm("said", "root", answer, at=at + 5, model="m-1"),
    ]


def collected(
    offset: int,
    trace_id: str,
    *steps: Step,
    partition: int = 0,
    system: str = SYSTEM,
    timestamp_ms: int | None = BROKER_TIME_MS,
) -> Settlement:
    """A record that holds steps of one trace."""
    return collected_all(offset, {trace_id: steps}, partition=partition, system=system, timestamp_ms=timestamp_ms)


def collected_all(
    offset: int,
    traces: Mapping[str, Sequence[Step]],
    *,
    partition: int = 0,
    system: str = SYSTEM,
    timestamp_ms: int | None = BROKER_TIME_MS,
) -> Settlement:
    """A record that holds steps of several traces."""
    found = [Piece(TraceKey(system, trace_id), tuple(steps), "otlp") for trace_id, steps in traces.items()]
    pieces, unusable = kept_pieces(found)
    assert unusable == []
    return Settlement(record(offset, partition, timestamp_ms), Outcome.COLLECTED, pieces=tuple(pieces))
