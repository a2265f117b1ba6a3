"""MLflow's own spans. Every attribute is JSON in a string, texts too."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.traces.attributes import people
from schemas.traces.contents import with_contents
from schemas.traces.convention import bare_step
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind
from schemas.values import as_parsed, as_text

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
_MODEL = "mlflow.llm.model"

# What functions have whose type nobody said.
_UNTYPED = "UNKNOWN"
_KINDS = {
    "CHAIN": StepKind.CHAIN,
    "AGENT": StepKind.CHAIN,
    "WORKFLOW": StepKind.CHAIN,
    "TASK": StepKind.CHAIN,
    _UNTYPED: StepKind.CHAIN,
    "RETRIEVER": StepKind.RETRIEVER,
    "RERANKER": StepKind.RERANKER,
    "LLM": StepKind.LLM,
    "CHAT_MODEL": StepKind.LLM,
}


@dataclass(frozen=True, slots=True)
class MlFlow:
    """Reads spans with a type, inputs and outputs of MLflow, as it exports them or keeps them in a trace."""

    name: str = "mlflow"

    def matches(self, span: Span) -> bool:
        """Whether the span has one of them."""
        return any(name in span.attributes for name in (_TYPE, _INPUTS, _OUTPUTS))

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        given, gave = as_parsed(span.attributes.get(_INPUTS)), as_parsed(span.attributes.get(_OUTPUTS))
        kind = _KINDS.get((as_text(as_parsed(span.attributes.get(_TYPE))) or _UNTYPED).upper(), StepKind.OTHER)
        known: dict[str, object] = {"kind": kind, "metadata": people(span.attributes)}
        if kind is StepKind.LLM:
            known["model"] = as_text(as_parsed(span.attributes.get(_MODEL))) or _model(gave) or _model(given)
        return with_contents(bare_step(span).model_copy(update=known), given, gave, name=span.name)


def _model(said: JsonValue) -> str | None:
    return as_text(said.get("model")) if isinstance(said, dict) else None
