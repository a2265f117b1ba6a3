"""What is told of a result, and to which systems. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from worker.settings.exports import LANGFUSE, LANGSMITH, MLFLOW, OTLP

# What the evaluation is called wherever results are sent to.
ANSWER = "grounding"
SENTENCE = "grounding.sentence"

_HEX_TRACE = re.compile(r"[0-9a-f]{32}")
# In which system the ids of a format lie.
_SYSTEMS = {"langfuse": LANGFUSE, "langsmith": LANGSMITH, "mlflow": MLFLOW}


@dataclass(frozen=True, slots=True)
class Result:
    """One evaluation: of the answer (``sentence`` is None) or of one of its flagged sentences.

    ``id`` is the same in every repeat; ``explanation`` says in words what the score is about.
    """

    id: UUID
    name: str
    score: float | None
    label: str
    explanation: str
    sentence: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerResults:
    """All that is sent of an answer, and the trace or run that it came from."""

    trace_id: str
    span_id: str | None
    app: str
    interaction_id: str
    scorer: str
    scored_at: datetime
    results: tuple[Result, ...]


def destinations(adapter: str, metadata: Mapping[str, object], chosen: Collection[str]) -> tuple[str, ...]:
    """Those of the chosen systems that know the exchange by its trace: the one that the format belongs to.

    Traces of OpenTelemetry may lie in Langfuse as well, whose ids are the same.
    """
    trace_id = metadata.get("trace_id")
    if not isinstance(trace_id, str) or not trace_id:
        return ()
    found = {system for prefix, system in _SYSTEMS.items() if adapter.startswith(prefix)}
    if _HEX_TRACE.fullmatch(trace_id) and found <= {LANGFUSE}:
        found = {OTLP, LANGFUSE}
    return tuple(name for name in chosen if name in found)
