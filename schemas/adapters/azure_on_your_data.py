"""Azure OpenAI On Your Data: chat completions with what the data source found in the message's context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.call import Api, Said, call_of, exchange, has_response, objects_in, texts_in
from schemas.adapters.citation_marks import cut_marks, numbered_marks
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.messages import read_messages
from schemas.traces.step import Document
from schemas.values import as_identifier, as_number, as_object, as_parsed

_MISSING = "context.citations: missing"
_MARK = re.compile(r"\[doc(\d{1,4})\]")
_IDS = ("id", "filepath", "url", "title", "chunk_id")
_SCORES = ("rerank_score", "original_search_score")
_CONTEXT_NAMES = ("citations", "all_retrieved_documents", "intent")


@dataclass(frozen=True, slots=True)
class AzureOnYourDataAdapter:
    """Reads completions of all versions of the API, also streams whose parts a row has in a list.

    Until 2023-06 what was found was a message of a tool beside the answer, then one in its context, since 2024-02 it is
    the context. The answer cites it as ``[doc1]``.
    """

    name: str = "azure_on_your_data"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is such a completion, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say that the model has not answered. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        response = call.response
        (message,) = read_messages({"role": "assistant", "content": response["content"]})
        if not message.text.strip():
            return (SkipReason.NO_ANSWER,)
        context = as_object(response["context"]) or {}
        documents = _documents(context)
        count = 0 if documents is None else len(documents)
        said = Said(
            message.text,
            documents,
            marks=cut_marks(message.text, numbered_marks(message.text, _MARK, count)),
            id=response.get("id"),
            model=response.get("model"),
            time=response.get("created"),
            queries=texts_in(as_parsed(context.get("intent"))),
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    """A completion with its answer under ``content`` and what was found under ``context``."""
    chunks = [value] if isinstance(value, dict) and "choices" in value else objects_in(value)
    parts = [part for chunk in chunks for part in _parts(chunk)]
    contexts = [context for part in parts if (context := _context(part)) is not None]
    if not contexts:
        return None
    texts = [part.get("content") for part in parts if part.get("role") != "tool"]
    joined = texts[0] if len(texts) == 1 else "".join(text for text in texts if isinstance(text, str))
    facts = {name: fact for chunk in reversed(chunks) for name, fact in chunk.items() if name != "choices"}
    return {**facts, "content": joined, "context": {name: one for found in contexts for name, one in found.items()}}


def _parts(chunk: JsonObject) -> Iterator[JsonObject]:
    """The messages of the first choice, whole or in parts."""
    for choice in objects_in(chunk.get("choices"))[:1]:
        for message in (choice.get("message"), choice.get("delta"), *objects_in(choice.get("messages"))):
            if isinstance(message, dict):
                yield as_object(message.get("delta")) or message


def _context(part: JsonObject) -> JsonObject | None:
    """What was found, if the message has it or is it."""
    if part.get("role") == "tool":
        return _known(as_parsed(part.get("content")))
    context = as_object(part.get("context")) or {}
    inner = (_known(as_parsed(message.get("content"))) for message in objects_in(context.get("messages")))
    return _known(context) or next((found for found in inner if found is not None), None)


def _known(context: JsonValue) -> JsonObject | None:
    known = {name: context[name] for name in _CONTEXT_NAMES if name in context} if isinstance(context, dict) else {}
    return known if isinstance(known.get("citations", known.get("all_retrieved_documents")), list) else None


def _documents(context: JsonObject) -> tuple[Document, ...] | None:
    """The citations, by whose places the answer names them; else what was retrieved and not filtered out."""
    if isinstance(context.get("citations"), list):
        return tuple(_document(one) for one in objects_in(context["citations"]))
    retrieved = objects_in(context.get("all_retrieved_documents"))
    return tuple(_document(one) for one in retrieved if not one.get("filter_reason"))


def _document(citation: JsonObject) -> Document:
    text = citation.get("content")
    ids = (as_identifier(citation.get(name)) for name in _IDS)
    scores = (as_number(citation.get(name)) for name in _SCORES)
    kept = {name: value for name, value in citation.items() if name not in ("content", "id") and value is not None}
    return Document(
        text=text if isinstance(text, str) else None,
        id=next((one for one in ids if one is not None), None),
        score=next((score for score in scores if score is not None), None),
        metadata=kept,
    )


_API = Api(_response, words=("choices",), request_names=("messages",))
