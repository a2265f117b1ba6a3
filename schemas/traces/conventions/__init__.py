"""The conventions that are known.

A new one is one more file here and one more entry in ``CONVENTIONS`` or ``LOG_CONVENTIONS``, before the general ones.
"""

from __future__ import annotations

from schemas.traces.convention import Convention, LogConvention, bare_step, completed
from schemas.traces.conventions.gen_ai import GenAi
from schemas.traces.conventions.gen_ai_events import GenAiEvents
from schemas.traces.conventions.langfuse import Langfuse
from schemas.traces.conventions.langsmith import LangSmith
from schemas.traces.conventions.mlflow import MlFlow
from schemas.traces.conventions.openinference import OpenInference
from schemas.traces.conventions.openllmetry import OpenLlmetry
from schemas.traces.conventions.trulens import TruLens
from schemas.traces.conventions.vector_store import VectorStore
from schemas.traces.conventions.vercel import Vercel
from schemas.traces.span import LogRecord, Span
from schemas.traces.step import Step

CONVENTIONS: tuple[Convention, ...] = (
    OpenInference(),
    Langfuse(),
    LangSmith(),
    TruLens(),
    MlFlow(),
    OpenLlmetry(),
    Vercel(),
    VectorStore(),
    GenAi(),
)
LOG_CONVENTIONS: tuple[LogConvention, ...] = (GenAiEvents(),)


def step_of_span(span: Span) -> Step:
    """Return what the span did, by the first convention that it follows; what that leaves open, others may say."""
    steps = [convention.step(span) for convention in CONVENTIONS if convention.matches(span)]
    return completed(steps) if steps else bare_step(span)


def step_of_record(record: LogRecord) -> Step | None:
    """Return what the record tells of its span, or None if it follows no convention."""
    for convention in LOG_CONVENTIONS:
        if convention.matches(record):
            return convention.step(record)
    return None
