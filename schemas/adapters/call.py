"""Calls of a vendor's API as rows log them: the response alone, or beside the request, and whatever else the row says.

The names around them are those of HTTP logs, gateways, batches and home-made rows; a body may be JSON in a string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import JsonValue

from schemas.adapters.aws_documents import BEDROCK, KENDRA, documents_in
from schemas.adapters.fields import take_passages, wrong_shape
from schemas.adapters.flat import FLAT_NAMES
from schemas.adapters.spelling import respelled
from schemas.interaction import MAX_ID_CHARS, MAX_PASSAGES
from schemas.payload import JsonObject
from schemas.thoughts import THOUGHTS
from schemas.traces.documents import documents_of
from schemas.traces.messages import Message, Role, last_question, read_messages
from schemas.traces.step import Document
from schemas.values import as_anything, as_identifier, as_parsed, as_text, merged

CITED_ONLY: JsonObject = {"evidence": "cited_only"}
"""Metadata of an exchange of which the log has those passages alone that the answer cites."""

_REQUEST_NAMES = ("request", "input", "req", "inputs", "params", "kwargs", "request_body", "requestBody", "body")
_RESPONSE_NAMES = (
    *("response", "output", "res", "result", "outputs", "completion", "response_body", "responseBody"),
    *("chat_completion", "body"),
)
_INNER_NAMES = ("body", "json", "data", "response", "message", "result", "params", "inputBodyJson", "outputBodyJson")
# {"response": {"body": {"result": ...}}} and one to spare.
_MAX_WRAPPERS = 4
_QUESTION_NAMES = (*FLAT_NAMES.question, "prompt")
# What a row may add to a response that it is otherwise: names that no vendor uses for something else.
_ADDED = (
    *("question", "query", "user_input", "passages", "contexts", "retrieved_contexts", "retrieval_context"),
    *("interaction_id", "request_id", "trace_id", "record_id", "occurred_at", "timestamp", "time", "event_time"),
    *(*FLAT_NAMES.app, "metadata"),
)
_MAX_FACT_CHARS = 200
_NOT_FACTS = {
    *("id", "object", "text", "content", "answer", "role", "type", "created", *FLAT_NAMES.occurred_at),
    *(*FLAT_NAMES.generator_model, *_ADDED),
}

ReadResponse: TypeAlias = Callable[[JsonValue], JsonObject | None]
"""The response of one vendor in the form that its adapter reads, or None for what is none."""


@dataclass(frozen=True, slots=True)
class Api:
    """How calls of a vendor's API are told.

    ``read`` reads a response, every one of which has one of the ``words``: a text without them is not parsed. A request
    has one of the ``request_names``.
    """

    read: ReadResponse
    words: tuple[str, ...]
    request_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its request, empty if the row has none; its response; and what else the row says.

    ``messages`` are those before the response, ``question`` what the user asked last, or what the row calls so, None
    if neither is there. ``logged`` are the passages that the row has beside the call, in native form, None if it has
    no list of any.
    """

    request: JsonObject
    response: JsonObject
    rest: JsonObject
    messages: tuple[Message, ...] = ()
    question: str | None = None
    logged: list[JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What an adapter found in a call.

    ``documents`` are None if nothing in the call can hold any, and empty if it holds none. ``queries`` are what was
    searched for in the question's stead; the first stands for it where nothing else says what was asked.
    """

    answer: str
    documents: tuple[Document, ...] | None
    question: str | None = None
    marks: Sequence[JsonObject] = ()
    id: JsonValue = None
    model: JsonValue = None
    time: JsonValue = None
    thoughts: str | None = None
    queries: Sequence[str] = ()
    metadata: JsonObject = field(default_factory=dict)


def has_response(row: JsonObject, api: Api) -> bool:
    """Whether the row is or holds a response."""
    return _response_in(row, api) is not None


def call_of(row: JsonObject, api: Api) -> Call:
    """Return the call in a row that has a response.

    Where its request is not under a name of its own, its fields may lie beside those of the response. Raises
    UnusablePayload (wrong_shape) for passages beside them that cannot be read.
    """
    place, response = _response_in(row, api) or (None, {})
    if place is None:
        request = {name: row[name] for name in api.request_names if name in row}
        return _completed(request, {name: row[name] for name in _ADDED if name in row}, response)
    rest = {name: value for name, value in row.items() if name != place}
    return _completed(*_parted(rest, api.request_names), response)


def objects_in(logged: JsonValue) -> list[JsonObject]:
    """Return the objects of a list, and none of anything else."""
    return [one for one in logged if isinstance(one, dict)] if isinstance(logged, list) else []


def texts_in(logged: JsonValue) -> list[str]:
    """Return the texts of a list, or the only one."""
    given = logged if isinstance(logged, list) else [logged]
    return [text for one in given if (text := as_text(one)) is not None]


def tool_passages(call: Call) -> tuple[Document, ...] | None:
    """Return what tools gave for the last question: the documents in it, or its text as one; None if none was run."""
    asked = max((place for place, one in enumerate(call.messages) if one.role is Role.USER), default=-1)
    given = [one for one in call.messages[asked + 1 :] if one.role is Role.TOOL]
    return tuple(document for one in given for document in tool_documents(one.text, one.artifact)) or None


def tool_documents(text: str, artifact: JsonValue = None) -> tuple[Document, ...]:
    """Return the documents that a tool gave, in its artifact or its text, else the text as one."""
    for output in (artifact, as_parsed(text)):
        if not isinstance(output, str) and (found := documents_of(output)):
            return found
    return (Document(text=text),) if text.strip() else ()


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the documents without those that come again, with the same id and text."""
    first: dict[tuple[str | None, str | None], Document] = {}
    for document in documents:
        first.setdefault((document.id, document.text), document)
    return tuple(first.values())


def exchange(call: Call, said: Said, *, fmt: str, missing: str) -> JsonObject:
    """Return the exchange in native form.

    The row's own id, app and time go before those of the response. Raises UnusablePayload (wrong_shape), which names
    the format and what is ``missing``, if neither the call nor the row holds passages.
    """
    passages = call.logged if said.documents is None else passages_of(said.documents, fmt)
    if passages is None:
        raise wrong_shape(fmt, missing)
    question = said.question or call.question
    rest = dict(call.rest)
    native: JsonObject = {
        "question": question or next(iter(said.queries), ""),
        "passages": list(passages),
        "answer": said.answer,
        "interaction_id": _taken(rest, FLAT_NAMES.interaction_id, as_identifier) or as_identifier(said.id),
        "app": _taken(rest, FLAT_NAMES.app, as_identifier),
        "occurred_at": _taken(rest, FLAT_NAMES.occurred_at, as_anything) or said.time,
        "generator_model": as_text(said.model) or _taken(rest, FLAT_NAMES.generator_model, as_text),
        "metadata": _metadata(call, said, rest, asked=question is not None),
    }
    return {**native, "answer_marks": list(said.marks)} if said.marks else native


def passages_of(documents: Sequence[Document], fmt: str) -> list[JsonValue]:
    """Return documents as passages in native form; one without text says nothing. Raises wrong_shape for too many."""
    if len(documents) > MAX_PASSAGES:
        raise wrong_shape(fmt, f"must hold at most {MAX_PASSAGES} passages")
    return [_passage(document, number) for number, document in enumerate(documents, 1)]


def _passage(document: Document, number: int) -> JsonObject:
    passage: JsonObject = {"id": document.id or f"ctx-{number}", "text": document.text or "", "score": document.score}
    if document.id is None or len(document.id) <= MAX_ID_CHARS:
        return {**passage, "metadata": document.metadata}
    return {**passage, "id": f"ctx-{number}", "metadata": merged(document.metadata, {"id": document.id})}


def _response_in(row: JsonObject, api: Api) -> tuple[str | None, JsonObject] | None:
    """The response and the name that it is under: None where the row itself is it."""
    if (bare := api.read(row)) is not None:
        return None, bare
    for name in _RESPONSE_NAMES:
        if name in row and (response := _found(row[name], api.read, api.words, _MAX_WRAPPERS)) is not None:
            return name, response
    return None


def _parted(rest: JsonObject, names: Sequence[str]) -> tuple[JsonObject, JsonObject]:
    """The request in a row, and the row without it."""

    def read(value: JsonValue) -> JsonObject | None:
        return value if isinstance(value, dict) and any(name in value for name in names) else None

    for name in _REQUEST_NAMES:
        if name in rest and (request := _found(rest[name], read, names, _MAX_WRAPPERS)) is not None:
            return request, {key: value for key, value in rest.items() if key != name}
    beside = {name: rest[name] for name in names if name in rest}
    return beside, {key: value for key, value in rest.items() if key not in beside}


def _completed(request: JsonObject, rest: JsonObject, response: JsonObject) -> Call:
    """Find what was asked, and passages that lie beside; what is used is no part of the rest."""
    rest = respelled(rest, FLAT_NAMES.all)
    messages = read_messages(request.get("messages"))
    for name in ("messages", "input", "prompt"):
        if not messages and isinstance(rest.get(name), list) and (messages := read_messages(rest[name])):
            del rest[name]
    question = last_question(messages)
    if question is None:
        question = _taken_text(rest)
    return Call(request, response, rest, messages, question, _taken_passages(rest))


def _taken_text(rest: JsonObject) -> str | None:
    for name in _QUESTION_NAMES:
        if (text := as_text(rest.get(name))) is not None:
            del rest[name]
            return text
    return None


def _taken_passages(rest: JsonObject) -> list[JsonValue] | None:
    for name, logged in rest.items():
        value = as_parsed(logged) if name in FLAT_NAMES.passages else logged
        if isinstance(value, list | dict) and (found := documents_in(value, (BEDROCK, KENDRA))):
            del rest[name]
            return passages_of(found, name)
    if all(rest.get(name) is None for name in FLAT_NAMES.passages):
        return None
    taken = take_passages(rest, FLAT_NAMES)
    return taken if isinstance(taken, list) else None


def _found(value: JsonValue, read: ReadResponse, words: Sequence[str], levels: int) -> JsonObject | None:
    """What ``read`` makes of a value, or of one inside its wrappers, of which each may be JSON in a text."""
    if isinstance(value, str):
        value = as_parsed(value) if any(word in value for word in words) else None
    if (found := read(value)) is not None:
        return found
    if not isinstance(value, dict) or not levels:
        return None
    inner = (_found(value[name], read, words, levels - 1) for name in _INNER_NAMES if name in value)
    return next((found for found in inner if found is not None), None)


def _metadata(call: Call, said: Said, rest: JsonObject, *, asked: bool) -> JsonObject:
    found: JsonObject = {**said.metadata}
    if not asked:
        found["question"] = "rewritten" if said.queries else "absent"
    if said.queries:
        found["queries"] = list(said.queries)
    if said.thoughts:
        found[THOUGHTS] = said.thoughts
    if facts := _facts(call.response):
        found["response"] = facts
    own = rest.get("metadata")
    others: JsonObject = {name: value for name, value in rest.items() if name != "metadata" and value is not None}
    return merged(merged(own if isinstance(own, dict) else {}, found), others)


def _facts(response: JsonObject) -> JsonObject:
    """The short facts of a response, as how it ended."""
    return {name: value for name, value in response.items() if name not in _NOT_FACTS and _is_short(value)}


def _is_short(value: JsonValue) -> bool:
    return 0 < len(value) <= _MAX_FACT_CHARS if isinstance(value, str) else isinstance(value, int | float)


def _taken(rest: JsonObject, names: Sequence[str], read: Callable[[JsonValue], JsonValue]) -> JsonValue:
    for name in names:
        if (value := read(rest.get(name))) is not None:
            del rest[name]
            return value
    return None
