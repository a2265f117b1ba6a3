"""OpenLLMetry: what the SDK of Traceloop and its instrumentors write of workflows, tasks, agents and tools."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.attributes import people
from schemas.traces.contents import with_contents
from schemas.traces.convention import bare_step
from schemas.traces.conventions.gen_ai import OPERATION
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind
from schemas.values import as_parsed, as_text

_KIND = "traceloop.span.kind"
_NAME = "traceloop.entity.name"
_INPUT = "traceloop.entity.input"
_OUTPUT = "traceloop.entity.output"
_PROPERTIES = "traceloop.association.properties."
# What LangChain and LangGraph say of themselves among what the application says of its users.
_OF_FRAMEWORKS = ("ls_", "lc_", "langgraph_", "checkpoint_ns")

_SAID = "gen_ai.output.messages"
_RETRIEVALS = {"vector_db_retrieve", "retrieval"}
_ANSWERS = {"chat", "text_completion", "completion", "llm_request"}
_CHAINS = {"workflow", "agent", "task"}


@dataclass(frozen=True, slots=True)
class OpenLlmetry:
    """Reads spans that name an entity and its kind."""

    name: str = "openllmetry"

    def matches(self, span: Span) -> bool:
        """Whether the span is an entity's."""
        return any(name in span.attributes for name in (_KIND, _NAME, _INPUT, _OUTPUT))

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        known: dict[str, object] = {"kind": _kind(span.attributes), "metadata": _metadata(span.attributes)}
        given, gave = _given(span.attributes.get(_INPUT)), _gave(span.attributes.get(_OUTPUT))
        name = as_text(span.attributes.get(_NAME)) or span.name
        # Retrievers of LlamaIndex and functions of one's own are tasks like all others.
        return with_contents(bare_step(span).model_copy(update=known), given, gave, name=name)


def _kind(attributes: JsonObject) -> StepKind:
    operation = as_text(attributes.get(OPERATION))
    if operation in _RETRIEVALS:
        return StepKind.RETRIEVER
    # A model of LlamaIndex is a task like all others, but for what it said.
    if operation in _ANSWERS or (operation is None and _SAID in attributes):
        return StepKind.LLM
    return StepKind.CHAIN if as_text(attributes.get(_KIND)) in _CHAINS else StepKind.OTHER


def _given(logged: JsonValue) -> JsonValue:
    """What the entity was given; LangChain's instrumentor puts it beside tags and options."""
    given = as_parsed(logged)
    return given["inputs"] if isinstance(given, dict) and "inputs" in given else given


def _gave(logged: JsonValue) -> JsonValue:
    gave = as_parsed(logged)
    return gave["outputs"] if isinstance(gave, dict) and "outputs" in gave else gave


def _metadata(attributes: JsonObject) -> JsonObject:
    known = people(attributes)
    taken = {"user_id", "session_id", "conversation_id", "thread_id"}
    properties: JsonObject = {
        name.removeprefix(_PROPERTIES): value for name, value in attributes.items() if name.startswith(_PROPERTIES)
    }
    others = {name: value for name, value in properties.items() if name not in taken}
    return {**{name: value for name, value in others.items() if not name.startswith(_OF_FRAMEWORKS)}, **known}
