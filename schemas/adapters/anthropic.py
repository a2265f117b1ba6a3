"""Anthropic's Messages API, with the search results and documents that a request gives the model to cite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.call import Api, Call, Said, call_of, distinct, exchange, has_response, objects_in, tool_passages
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.messages import read_messages
from schemas.traces.step import Document
from schemas.values import as_identifier, as_object, as_text

_NO_REQUEST = "request: missing; the passages are in it, and a response quotes the cited places only"
_NO_BLOCKS = "no search_result or document in the request, and no passages beside it"
_RESULTS = ("tool_result", "web_fetch_tool_result", "web_search_tool_result")
_MAX_LEVELS = 4


@dataclass(frozen=True, slots=True)
class AnthropicAdapter:
    """Reads a message with its request.

    A response alone is refused: it quotes what it cites, and against a quotation everything else would look unfounded.
    """

    name: str = "anthropic"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a message of the model's, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say why there is none. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        (message,) = read_messages({"role": "assistant", "content": call.response.get("content")})
        if not message.text.strip():
            return (SkipReason.NO_ANSWER,)
        documents = _documents(call)
        if documents and all(document.text is None for document in documents):
            return (SkipReason.PASSAGES_WITHOUT_TEXT,)
        said = Said(
            message.text,
            documents,
            id=call.response.get("id"),
            model=call.response.get("model"),
            thoughts=message.thoughts,
        )
        return (exchange(call, said, fmt=self.name, missing=_NO_BLOCKS if call.messages else _NO_REQUEST),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return None
    is_message = value.get("type") == "message" and value.get("role") == "assistant"
    return value if is_message and ("stop_reason" in value or "usage" in value) else None


def _documents(call: Call) -> tuple[Document, ...] | None:
    """Every document that the model was given, in the order of the conversation; else what the row has, or tools."""
    given = [block for message in objects_in(call.request.get("messages")) for block in _blocks(message)]
    found = distinct(document for block in (*given, *_blocks(call.response)) for document in _read(block))
    return found or (tool_passages(call) if call.logged is None else None)


def _blocks(holder: JsonObject, levels: int = _MAX_LEVELS) -> Iterator[JsonObject]:
    """The blocks of a message, and those in the results of tools."""
    content = holder.get("content")
    for block in objects_in(content) or objects_in([content]):
        yield block
        if levels and (block.get("type") in _RESULTS or block.get("type") == "web_fetch_result"):
            yield from _blocks(block, levels - 1)


def _read(block: JsonObject) -> Iterator[Document]:
    kind = block.get("type")
    if kind == "search_result":
        facts = _facts(block, ("title",))
        yield Document(text=_text(block.get("content")), id=as_identifier(block.get("source")), metadata=facts)
    elif kind == "document":
        source = as_object(block.get("source")) or {}
        text = source.get("data") if source.get("type") == "text" else _text(source.get("content"))
        names = (block.get("title"), source.get("file_id"), source.get("url"))
        own = next((name for one in names if (name := as_identifier(one)) is not None), None)
        yield Document(text=text if isinstance(text, str) else None, id=own, metadata=_facts(block, ("context",)))
    elif kind == "web_search_result":
        yield Document(id=as_identifier(block.get("url")), metadata=_facts(block, ("title", "page_age")))


def _text(content: JsonValue) -> str | None:
    """Content that is cut into blocks, of which each can be cited."""
    if isinstance(content, str):
        return content
    texts = [text for block in objects_in(content) if (text := as_text(block.get("text"))) is not None]
    return "\n".join(texts) if texts else None


def _facts(block: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: block[name] for name in names if block.get(name) is not None}


_API = Api(_response, words=("content",), request_names=("messages", "system"))
