"""Langfuse since version 3, whose SDKs write observations as spans."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.attributes import first_text, people
from schemas.traces.contents import with_contents
from schemas.traces.convention import bare_step
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind
from schemas.traces.texts import answer_in, question_in
from schemas.values import as_parsed, as_text

_PREFIX = "langfuse."
_TYPE = "langfuse.observation.type"
_INPUT = "langfuse.observation.input"
_OUTPUT = "langfuse.observation.output"
_MODEL = "langfuse.observation.model.name"
_TRACE_INPUT = "langfuse.trace.input"
_TRACE_OUTPUT = "langfuse.trace.output"
_TRACE_METADATA = "langfuse.trace.metadata."
_ENVIRONMENT = "langfuse.environment"
_NO_ENVIRONMENT = "default"
# Set by version 5 and, where the caller named a trace and a parent that no span has, by all.
_ROOT = ("langfuse.internal.is_app_root", "langfuse.internal.as_root")

_KINDS = {
    "retriever": StepKind.RETRIEVER,
    "generation": StepKind.LLM,
    "chain": StepKind.CHAIN,
    "agent": StepKind.CHAIN,
    "span": StepKind.CHAIN,
}
_OTHERS = re.compile(r"gen_ai\.|openinference\.|traceloop\.|mlflow\.|ai\.|db\.")


@dataclass(frozen=True, slots=True)
class Langfuse:
    """Reads observations. Inputs and outputs are texts, or JSON in texts where they were something else."""

    name: str = "langfuse"

    def matches(self, span: Span) -> bool:
        """Whether an SDK of Langfuse wrote the span, or added to what another library says in it."""
        return any(name.startswith(_PREFIX) for name in span.attributes)

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        step = bare_step(span)
        attributes = span.attributes
        is_root = step.is_root or any(attributes.get(name) in (True, "true") for name in _ROOT)
        given, gave = _said(attributes, is_root=is_root)
        known = step.model_copy(
            update={
                "is_root": is_root,
                "kind": _kind(attributes),
                "app": step.app or _environment(span),
                "model": as_text(attributes.get(_MODEL)),
                "metadata": _metadata(attributes),
            }
        )
        return with_contents(known, given, gave, name=span.name)


def _kind(attributes: JsonObject) -> StepKind:
    kind = as_text(attributes.get(_TYPE))
    if kind is not None:
        return _KINDS.get(kind.lower(), StepKind.OTHER)
    if _MODEL in attributes:
        return StepKind.LLM
    # Where inputs are all that was added to another library's span, that one knows what it is.
    is_own = (_INPUT in attributes or _OUTPUT in attributes) and not any(map(_OTHERS.match, attributes))
    return StepKind.CHAIN if is_own else StepKind.OTHER


def _said(attributes: JsonObject, *, is_root: bool) -> tuple[JsonValue, JsonValue]:
    """Input and output. What a program says of its whole trace counts more at the root, and nothing elsewhere."""
    given, gave = attributes.get(_INPUT), attributes.get(_OUTPUT)
    if not is_root:
        return given, gave
    trace_given, trace_gave = attributes.get(_TRACE_INPUT), attributes.get(_TRACE_OUTPUT)
    return (
        trace_given if question_in(trace_given) is not None else given,
        trace_gave if answer_in(trace_gave) is not None else gave,
    )


def _environment(span: Span) -> str | None:
    name = first_text(span.attributes, (_ENVIRONMENT,)) or first_text(span.resource, (_ENVIRONMENT,))
    return None if name == _NO_ENVIRONMENT else name


def _metadata(attributes: JsonObject) -> JsonObject:
    more = {
        name.removeprefix(_TRACE_METADATA): as_parsed(value)
        for name, value in attributes.items()
        if name.startswith(_TRACE_METADATA)
    }
    return {**more, **people(attributes)}
