"""OpenTelemetry's own convention for generative AI, in all its versions since ``gen_ai.system``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.attributes import first_given, first_text, numbered, people
from schemas.traces.convention import bare_step
from schemas.traces.documents import documents_of, looks_retrieved, read_documents
from schemas.traces.messages import Message, Role, last_answer, last_question, read_messages
from schemas.traces.span import Span
from schemas.traces.step import Document, Step, StepKind
from schemas.traces.texts import question_in
from schemas.values import as_number, as_parsed, as_text

OPERATION = "gen_ai.operation.name"
_KINDS = {
    "chat": StepKind.LLM,
    "text_completion": StepKind.LLM,
    "completion": StepKind.LLM,
    "generate_content": StepKind.LLM,
    "invoke_agent": StepKind.CHAIN,
    "invoke_workflow": StepKind.CHAIN,
    "execute_task": StepKind.CHAIN,
    "retrieval": StepKind.RETRIEVER,
    "retrieve": StepKind.RETRIEVER,
    "vector_db_retrieve": StepKind.RETRIEVER,
    "rerank": StepKind.RERANKER,
    "reranking": StepKind.RERANKER,
}
# OpenLLMetry, before there were names of operations.
_REQUEST = "llm.request.type"
_QUERY = "gen_ai.retrieval.query.text"
_DOCUMENTS = "gen_ai.retrieval.documents"
_ARGUMENTS = "gen_ai.tool.call.arguments"
_RESULT = "gen_ai.tool.call.result"
_TOOL_TYPE = "gen_ai.tool.type"
_CHOICES = "gen_ai.request.choice.count"
_MODELS = ("gen_ai.response.model", "gen_ai.request.model")

_INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.prompts")
_OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "gen_ai.completions")
# OpenLLMetry flattened its messages, first under names of its own.
_FLAT_INPUTS = ("gen_ai.prompt", "llm.prompts")
_FLAT_OUTPUTS = ("gen_ai.completion", "llm.completions")
_PREFIXES = ("gen_ai.", "llm.prompts.", "llm.completions.", _REQUEST)

# How prompts name the variable that holds the evidence.
_VARIABLE = "gen_ai.prompt.variable."
_CONTEXTS = (
    *("context", "contexts", "context_str", "documents", "docs", "sources", "passages", "retrieved_context"),
    *("retrieved_documents", "retrieved_docs", "knowledge"),
)

_EVENT_CONTENT = "gen_ai.event.content"
_SPEAKERS = {
    "gen_ai.system.message": Role.SYSTEM,
    "gen_ai.user.message": Role.USER,
    "gen_ai.assistant.message": Role.ASSISTANT,
    "gen_ai.tool.message": Role.TOOL,
}
CHOICE = "gen_ai.choice"


@dataclass(frozen=True, slots=True)
class GenAi:
    """Reads spans with attributes of the convention, or with the events that once held what was said."""

    name: str = "gen_ai"

    def matches(self, span: Span) -> bool:
        """Whether the span has an attribute or an event of the convention."""
        names = (*span.attributes, *(event.name for event in span.events))
        return any(name.startswith(prefix) for name in names for prefix in _PREFIXES)

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        attributes = dict(span.attributes)
        events: list[tuple[str, JsonValue]] = []
        for event in span.events:
            if event.name in _SPEAKERS or event.name == CHOICE:
                events.append((event.name, first_given(event.attributes, (_EVENT_CONTENT,)) or event.attributes))
            elif event.name.startswith("gen_ai."):
                attributes = {**event.attributes, **attributes}
        return told(bare_step(span), attributes, events)


def told(step: Step, attributes: JsonObject, events: Iterable[tuple[str, JsonValue]] = ()) -> Step:
    """Return the step with what attributes and events (their names with their bodies) say of it."""
    events = tuple(events)
    inputs, outputs = _messages(attributes, events)
    kind = _kind(attributes, said=bool(inputs or outputs))
    known: dict[str, object] = {"kind": kind, "metadata": people(attributes)}
    if kind in {StepKind.LLM, StepKind.CHAIN}:
        answer = _answer(outputs, attributes)
        known["answer"] = answer.text if answer else None
        known["thoughts"] = answer.thoughts if answer else None
        known["model"] = first_text(attributes, _MODELS)
        prompt = last_question(inputs)
        if kind is StepKind.LLM:
            known |= {"prompt": prompt, "context": _context(attributes)}
        elif prompt is not None:
            known["question"] = question_in(prompt) or prompt
    elif kind in {StepKind.RETRIEVER, StepKind.RERANKER}:
        known["question"] = first_text(attributes, (_QUERY,)) or question_in(attributes.get(_ARGUMENTS))
        known["documents"] = _documents(attributes)
    return step.model_copy(update=known)


def said_in_event(name: str, body: JsonValue) -> tuple[Message, ...]:
    """Return what a message event or a choice says; nothing for a choice that is not the first."""
    body = as_parsed(body)
    if name == CHOICE and isinstance(body, dict):
        if as_number(body.get("index")) not in (None, 0):
            return ()
        body = as_parsed(first_given(body, ("message", "content")))
    elif isinstance(body, dict) and "content" in body:
        body = {**body, "content": as_parsed(body["content"])}
    role = _SPEAKERS.get(name, Role.ASSISTANT)
    return read_messages({**body, "role": role} if isinstance(body, dict) else {"role": role, "content": body})


def _kind(attributes: JsonObject, *, said: bool) -> StepKind:
    operation = as_text(attributes.get(OPERATION)) or as_text(attributes.get(_REQUEST))
    if operation == "execute_tool":
        is_store = attributes.get(_TOOL_TYPE) == "datastore" or looks_retrieved(attributes.get(_RESULT))
        return StepKind.RETRIEVER if is_store else StepKind.OTHER
    if operation is not None:
        return _KINDS.get(operation.lower(), StepKind.OTHER)
    if _QUERY in attributes or _DOCUMENTS in attributes:
        return StepKind.RETRIEVER
    return StepKind.LLM if said or first_text(attributes, _MODELS[:1]) else StepKind.OTHER


def _messages(
    attributes: JsonObject, events: tuple[tuple[str, JsonValue], ...]
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    inputs = _logged(attributes, _INPUTS, _FLAT_INPUTS, Role.USER)
    outputs = _logged(attributes, _OUTPUTS, _FLAT_OUTPUTS, Role.ASSISTANT)
    said = [(name, message) for name, body in events for message in said_in_event(name, body)]
    return (
        inputs or tuple(message for name, message in said if name != CHOICE),
        outputs or tuple(message for name, message in said if name == CHOICE),
    )


def _logged(
    attributes: JsonObject, names: tuple[str, ...], flattened: tuple[str, ...], speaker: Role
) -> tuple[Message, ...]:
    """The messages in one attribute, which may be a bare text, or in attributes of their own."""
    logged = as_parsed(first_given(attributes, names))
    if isinstance(logged, str):
        return (Message(speaker, (logged,)),)
    messages = read_messages(logged)
    if messages:
        return messages
    rows = next((rows for prefix in flattened if (rows := numbered(attributes, prefix))), [])
    return read_messages([_spoken(row, speaker) for row in rows])


def _spoken(row: JsonObject, speaker: Role) -> JsonObject:
    """A message whose lists are flattened too: that there are calls of tools is all that counts of them."""
    calls: list[JsonValue] = [True] if any(name.startswith(("tool_calls.", "function_call")) for name in row) else []
    content = as_parsed(row.get("content"))
    # Content that is JSON is a list of parts; an answer that happens to be an object stays the text that it is.
    return {
        "role": row.get("role") or speaker,
        "content": content if isinstance(content, list) else row.get("content"),
        "reasoning_content": row.get("reasoning") or row.get("reasoning_content"),
        "tool_calls": calls,
    }


def _answer(outputs: tuple[Message, ...], attributes: JsonObject) -> Message | None:
    """What was said last; of several choices the first, which is what programs show."""
    if (as_number(attributes.get(_CHOICES)) or 1) > 1:
        outputs = outputs[:1]
    return last_answer(outputs)


def _context(attributes: JsonObject) -> str | None:
    """The evidence in the prompt as one text: a variable, which may hold documents."""
    value = first_given(attributes, (f"{_VARIABLE}{name}" for name in _CONTEXTS))
    documents = read_documents(as_parsed(value))
    if documents is None:
        return as_text(value)
    return "\n\n".join(document.text for document in documents if document.text) or None


def _documents(attributes: JsonObject) -> tuple[Document, ...] | None:
    """The documents, mostly without their texts; what a store's tool gave is one, if it is a text."""
    documents = documents_of(attributes.get(_DOCUMENTS))
    if documents is not None:
        return documents
    result = attributes.get(_RESULT)
    documents = documents_of(result)
    text = as_text(as_parsed(result))
    return (Document(text=text),) if documents is None and text is not None else documents
