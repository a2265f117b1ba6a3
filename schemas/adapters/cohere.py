"""Cohere's chat, in the versions 2 and 1 of its API, with the documents that it was given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.call import (
    CITED_ONLY,
    Api,
    Call,
    Said,
    call_of,
    distinct,
    exchange,
    has_response,
    objects_in,
    texts_in,
)
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.documents import read_document
from schemas.traces.messages import read_messages
from schemas.traces.step import Document
from schemas.values import as_identifier, as_object, as_parsed, as_text

_MISSING = "no documents in the request, and the response cites none"
_FIRST_MARKS = ("generation_id", "response_id", "chat_history", "is_search_required")


@dataclass(frozen=True, slots=True)
class CohereAdapter:
    """Reads a response with its request.

    Alone, a response of version 2 has those documents only that it cites; one of version 1 has all, and the question.
    """

    name: str = "cohere"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a response, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say that the model has not answered. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        message = as_object(call.response.get("message")) or {"content": call.response.get("text")}
        (answer,) = read_messages({"role": "assistant", "content": message.get("content")})
        if not answer.text.strip():
            return (SkipReason.NO_ANSWER,)
        documents, evidence = _documents(call, message)
        said = Said(
            answer.text,
            documents,
            question=_first_question(call),
            id=call.response.get("id") or call.response.get("response_id") or call.response.get("generation_id"),
            model=call.request.get("model") or call.rest.get("model"),
            thoughts=answer.thoughts,
            queries=[
                text for one in objects_in(call.response.get("search_queries")) for text in texts_in(one.get("text"))
            ],
            metadata=evidence,
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("text"), str) and any(name in value for name in _FIRST_MARKS):
        return value
    message = value.get("message")
    if not isinstance(message, dict) or message.get("role") != "assistant" or "finish_reason" not in value:
        return None
    return value if isinstance(message.get("content"), list) or "citations" in message else None


def _first_question(call: Call) -> str | None:
    """What version 1 was asked: it is in its history, too, of which the last turn is the answer."""
    if (asked := as_text(call.request.get("message"))) is not None:
        return asked
    turns = objects_in(call.response.get("chat_history"))
    asked_before = [text for turn in turns if turn.get("role") == "USER" for text in texts_in(turn.get("message"))]
    return asked_before[-1] if asked_before else None


def _documents(call: Call, message: JsonObject) -> tuple[tuple[Document, ...] | None, JsonObject]:
    """What the model was given; else what the row has; else what is cited, and what is to be said of that."""
    given = call.response.get("documents") or call.request.get("documents")
    if not isinstance(given, list):
        given = [one for turn in objects_in(call.request.get("messages")) for one in _of_tool(turn)] or None
    if isinstance(given, list):
        return tuple(_document(one) for one in given), {}
    if call.logged is not None:
        return None, {}
    sources = [one for cited in objects_in(message.get("citations")) for one in objects_in(cited.get("sources"))]
    cited_only = distinct(_document(_of_source(one)) for one in sources)
    return (cited_only, CITED_ONLY) if cited_only else (None, {})


def _of_tool(turn: JsonObject) -> list[JsonValue]:
    parts = objects_in(turn.get("content")) if turn.get("role") == "tool" else []
    return [part.get("document") for part in parts if part.get("type") == "document"]


def _of_source(source: JsonObject) -> JsonObject:
    inner = as_object(source.get("document")) or as_object(source.get("tool_output")) or {}
    return {**inner, "id": inner.get("id") or source.get("id")}


def _document(logged: JsonValue) -> Document:
    """A text, an object of fields, or an object with a text or fields under ``data``."""
    if not isinstance(logged, dict):
        return Document(text=logged if isinstance(logged, str) else None)
    data = as_parsed(logged.get("data"))
    if isinstance(data, str):
        return Document(text=data, id=as_identifier(logged.get("id")))
    fields = {**(data if isinstance(data, dict) else logged), "id": logged.get("id")}
    document = read_document(fields)
    if document is not None and document.text is not None:
        return document
    # The model reads such a document as its fields, one a line.
    lines = [
        f"{name}: {value}" for name, value in fields.items() if name != "id" and isinstance(value, str | int | float)
    ]
    return Document(text="\n".join(lines) or None, id=as_identifier(logged.get("id")))


_API = Api(
    _response,
    words=("finish_reason", *_FIRST_MARKS),
    request_names=("messages", "message", "documents", "chat_history"),
)
