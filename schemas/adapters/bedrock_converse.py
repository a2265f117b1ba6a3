"""Amazon Bedrock's Converse, with the search results and documents that a request gives the model to cite."""

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
_NO_BLOCKS = "no searchResult or document in the request, and no passages beside it"


@dataclass(frozen=True, slots=True)
class BedrockConverseAdapter:
    """Reads a response with its request. Alone it is refused, as one of Anthropic's is."""

    name: str = "bedrock_converse"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a response, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say why there is none. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        (message,) = read_messages({"role": "assistant", "content": list(_shown(call.response))})
        if not message.text.strip():
            return (SkipReason.NO_ANSWER,)
        documents = _documents(call)
        if documents and all(document.text is None for document in documents):
            return (SkipReason.PASSAGES_WITHOUT_TEXT,)
        said = Said(
            message.text,
            documents,
            id=(as_object(call.response.get("ResponseMetadata")) or {}).get("RequestId"),
            model=call.request.get("modelId"),
            thoughts=message.thoughts,
        )
        return (exchange(call, said, fmt=self.name, missing=_NO_BLOCKS if call.messages else _NO_REQUEST),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict) or "stopReason" not in value:
        return None
    message = as_object((as_object(value.get("output")) or {}).get("message")) or {}
    return value if isinstance(message.get("content"), list) else None


def _shown(response: JsonObject) -> Iterator[JsonObject]:
    """The blocks of the answer; those with citations hold their text one level down."""
    message = as_object((as_object(response.get("output")) or {}).get("message")) or {}
    for block in objects_in(message.get("content")):
        cited = as_object(block.get("citationsContent"))
        if cited is None:
            yield block
        else:
            yield from objects_in(cited.get("content"))


def _documents(call: Call) -> tuple[Document, ...] | None:
    """What the model was given, in the order of the conversation; else what the row has, or what tools gave."""
    turns = objects_in(call.request.get("messages"))
    found = distinct(document for turn in turns for block in _blocks(turn) for document in _read(block))
    return found or (tool_passages(call) if call.logged is None else None)


def _blocks(turn: JsonObject) -> Iterator[JsonObject]:
    for block in objects_in(turn.get("content")):
        yield block
        yield from objects_in((as_object(block.get("toolResult")) or {}).get("content"))


def _read(block: JsonObject) -> Iterator[Document]:
    if (result := as_object(block.get("searchResult"))) is not None:
        facts: JsonObject = {"title": result["title"]} if result.get("title") else {}
        yield Document(text=_text(result.get("content")), id=as_identifier(result.get("source")), metadata=facts)
    elif (document := as_object(block.get("document"))) is not None:
        source = as_object(document.get("source")) or {}
        text = source.get("text") if isinstance(source.get("text"), str) else _text(source.get("content"))
        name = as_identifier(document.get("name"))
        yield Document(text=text if isinstance(text, str) else None, id=name)


def _text(content: JsonValue) -> str | None:
    texts = [text for part in objects_in(content) if (text := as_text(part.get("text"))) is not None]
    return "\n".join(texts) if texts else None


_API = Api(_response, words=("stopReason",), request_names=("messages", "modelId"))
