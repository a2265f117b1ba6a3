"""OpenInference: what Phoenix, Arize and the instrumentors of that name write."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.traces.convention import bare_step
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind

_KIND = "openinference.span.kind"
_KINDS = {
    "CHAIN": StepKind.CHAIN,
    "AGENT": StepKind.CHAIN,
    "RETRIEVER": StepKind.RETRIEVER,
    "RERANKER": StepKind.RERANKER,
    "LLM": StepKind.LLM,
}


@dataclass(frozen=True, slots=True)
class OpenInference:
    """Reads spans that say their kind as OpenInference does."""

    name: str = "openinference"

    def matches(self, span: Span) -> bool:
        """Whether the span has a kind of OpenInference."""
        return _KIND in span.attributes

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        kind = _KINDS.get(str(span.attributes.get(_KIND)).upper(), StepKind.OTHER)
        return bare_step(span).model_copy(update={"kind": kind})
