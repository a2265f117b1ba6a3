"""Traces whose steps come in many messages, as the worker would hand them to the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Step
from tests.integration.store_examples import BROKER_TIME_MS, record
from worker.rules.pieces import kept_pieces
from worker.rules.settlement import Outcome, Settlement

SYSTEM = "otlp"


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
