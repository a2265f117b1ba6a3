"""Google's Gemini, with the chunks that an answer is grounded in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.call import Api, Call, Said, call_of, exchange, has_response, objects_in, texts_in, tool_passages
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.messages import last_question, read_messages
from schemas.traces.step import Document
from schemas.values import as_identifier, as_object, as_text

_MISSING = "grounding_metadata.grounding_chunks: missing, and no passages beside it"
_SOURCES = ("retrieved_context", "web", "maps")
_IDS = ("chunk_id", "uri", "document_name", "place_id", "title")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class GeminiAdapter:
    """Reads a response in snake and in camel case, with its request or without: then the question is absent.

    A chunk of the web has an address and no text; an answer that rests on such alone is skipped.
    """

    name: str = "gemini"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a response, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say why there is none. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        (message,) = read_messages({"role": "model", "parts": call.response["parts"]})
        if not message.text.strip():
            return (SkipReason.NO_ANSWER,)
        documents = _documents(call)
        if documents and all(document.text is None for document in documents):
            return (SkipReason.PASSAGES_WITHOUT_TEXT,)
        grounding = as_object(call.response["grounding"]) or {}
        said = Said(
            message.text,
            documents,
            question=_question(call.request.get("contents")),
            id=call.response.get("response_id"),
            model=call.response.get("model_version"),
            time=call.response.get("create_time"),
            thoughts=message.thoughts,
            queries=texts_in(grounding.get("retrieval_queries")) + texts_in(grounding.get("web_search_queries")),
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    """A response with the parts of its first candidate, and what these are grounded in; of a stream, all as one."""
    chunks = [value] if isinstance(value, dict) and "candidates" in value else objects_in(value)
    candidates = [candidate for chunk in chunks for candidate in objects_in(chunk.get("candidates"))[:1]]
    contents = [content for one in candidates if (content := as_object(one.get("content"))) is not None]
    if not any(isinstance(content.get("parts"), list) for content in contents):
        return None
    facts = {_snake(name): one for chunk in reversed(chunks) for name, one in chunk.items() if name != "candidates"}
    parts: list[JsonValue] = [part for content in contents for part in objects_in(content.get("parts"))]
    return {**facts, "parts": parts, "grounding": _grounding(candidates)}


def _grounding(candidates: list[JsonObject]) -> JsonObject:
    """What all candidates say; the chunks of a stream's later parts come behind those of its earlier ones."""
    found: dict[str, list[JsonValue]] = {}
    for candidate in candidates:
        said = as_object(_snaked(candidate).get("grounding_metadata")) or {}
        for name, values in _snaked(said).items():
            if isinstance(values, list):
                found.setdefault(name, []).extend(values)
    return {**found}


def _documents(call: Call) -> tuple[Document, ...] | None:
    grounding = as_object(call.response["grounding"]) or {}
    if "grounding_chunks" in grounding:
        return tuple(_document(chunk) for chunk in objects_in(grounding["grounding_chunks"]))
    return tool_passages(call) if call.logged is None else None


def _document(chunk: JsonObject) -> Document:
    chunk = _snaked(chunk)
    kind = next((name for name in _SOURCES if isinstance(chunk.get(name), dict)), "")
    source = _snaked(as_object(chunk.get(kind)) or {})
    piece = _snaked(as_object(source.get("rag_chunk")) or {})
    ids = (as_identifier(holder.get(name)) for name in _IDS for holder in (piece, source))
    facts: JsonObject = {"source": kind, "title": source.get("title"), "uri": source.get("uri")}
    return Document(
        text=as_text(source.get("text")) or as_text(piece.get("text")),
        id=next((one for one in ids if one is not None), None),
        metadata={name: value for name, value in facts.items() if value},
    )


def _question(contents: JsonValue) -> str | None:
    """A text, texts, or messages, of which a single one may not say that it is the user's."""
    if isinstance(contents, dict):
        contents = [contents]
    if isinstance(contents, list):
        said: list[JsonValue] = [{"role": "user", **one} if isinstance(one, dict) else one for one in contents]
        if (asked := last_question(read_messages(said))) is not None:
            return asked
    texts = texts_in(contents)
    return texts[-1] if texts else None


def _snaked(fields: JsonObject) -> JsonObject:
    return {_snake(name): value for name, value in fields.items()}


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


_API = Api(_response, words=("candidates",), request_names=("contents",))
