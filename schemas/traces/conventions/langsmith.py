"""LangSmith's runs as spans: what its clients write where OpenTelemetry is on (``LANGSMITH_OTEL_ENABLED``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.payload import JsonObject
from schemas.traces.attributes import first_given, first_text, people
from schemas.traces.contents import with_contents
from schemas.traces.convention import bare_step
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind
from schemas.values import as_parsed, as_text

_PREFIX = "langsmith."
_KIND = "langsmith.span.kind"
_PROJECT = "langsmith.trace.session_name"
_TAGS = "langsmith.span.tags"
_METADATA = "langsmith.metadata."
# The second of each is what the service takes from spans that people write by hand.
_GIVEN = ("gen_ai.prompt", "input.value")
_GAVE = ("gen_ai.completion", "output.value")
_MODEL = ("langsmith.metadata.ls_model_name", "gen_ai.response.model", "gen_ai.request.model")

KINDS = {"chain": StepKind.CHAIN, "retriever": StepKind.RETRIEVER, "llm": StepKind.LLM}
"""What types of runs do; the others only connect."""
OF_CLIENT = re.compile(r"LANGSMITH_|LANGCHAIN_|ls_|lc_|__|revision_id")
"""What the client says of itself and of the model, in the metadata of every run."""
COMMON = {"user_id": "user", "session_id": "session", "thread_id": "session", "conversation_id": "session"}


@dataclass(frozen=True, slots=True)
class LangSmith:
    """Reads runs. Inputs and outputs are JSON in texts."""

    name: str = "langsmith"

    def matches(self, span: Span) -> bool:
        """Whether a client of LangSmith wrote the span, or a person wrote it for LangSmith."""
        return any(name.startswith(_PREFIX) for name in span.attributes)

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        step = bare_step(span)
        attributes = span.attributes
        known = step.model_copy(
            update={
                "kind": KINDS.get(str(attributes.get(_KIND)).lower(), StepKind.OTHER),
                "app": as_text(attributes.get(_PROJECT)) or step.app,
                "model": first_text(attributes, _MODEL),
                "metadata": _metadata(attributes) if step.is_root else {},
            }
        )
        return with_contents(known, first_given(attributes, _GIVEN), first_given(attributes, _GAVE), name=span.name)


def _metadata(attributes: JsonObject) -> JsonObject:
    facts = {
        name.removeprefix(_METADATA): as_parsed(value)
        for name, value in attributes.items()
        if name.startswith(_METADATA)
    }
    said: JsonObject = {COMMON.get(name, name): value for name, value in facts.items() if not OF_CLIENT.match(name)}
    tags = as_text(attributes.get(_TAGS))
    if tags:
        said["tags"] = list(tags.split(", "))
    return {**said, **people(attributes)}
