"""Chat completions as OpenAI and those who copied it answer, with what their answer rests on wherever it lies."""

from __future__ import annotations

import re
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
    tool_passages,
)
from schemas.adapters.citation_marks import cut_marks, numbered_marks
from schemas.adapters.openai_marks import annotated_marks
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.documents import read_document, read_documents
from schemas.traces.messages import read_messages
from schemas.traces.step import Document
from schemas.values import as_object, as_text

_MISSING = "no passages in request or response; log what was retrieved beside them, as contexts"
_NUMBER = re.compile(r"\[(\d{1,3})\]")
_SAID = ("content", "reasoning_content", "reasoning")
SNIPPETS: JsonObject = {"evidence": "snippets"}


@dataclass(frozen=True, slots=True)
class OpenAiChatAdapter:
    """Reads a completion of which the row has the passages.

    They lie beside it under a common name, in the request (``documents``, as vLLM takes them), in messages of tools, in
    the results of a search (Perplexity) or in the pages that are cited (OpenRouter).
    """

    name: str = "openai_chat"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a completion, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say why there is none. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        logged = _message(call.response)
        own = {name: logged[name] for name in _SAID if name in logged}
        (message,) = read_messages({**own, "role": "assistant"})
        if not message.text.strip():
            return (SkipReason.NO_ANSWER,)
        documents, evidence = _documents(call, logged)
        if documents and all(document.text is None for document in documents):
            return (SkipReason.PASSAGES_WITHOUT_TEXT,)
        said = Said(
            message.text,
            documents,
            marks=cut_marks(message.text, _marks(call.response, logged, message.text)),
            id=call.response.get("id"),
            model=call.response.get("model"),
            time=call.response.get("created"),
            thoughts=message.thoughts,
            metadata=evidence,
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict):
        return None
    choices = objects_in(value.get("choices"))
    return value if choices and isinstance(choices[0].get("message"), dict) else None


def _message(response: JsonObject) -> JsonObject:
    return as_object(objects_in(response.get("choices"))[0].get("message")) or {}


def _marks(response: JsonObject, message: JsonObject, text: str) -> list[tuple[int, int]]:
    """Perplexity numbers its sources in the text; the others say where their marks are."""
    sources = max(len(texts_in(response.get("citations"))), len(objects_in(response.get("search_results"))))
    numbered = numbered_marks(text, _NUMBER, sources) if "object" in response else []
    return numbered + annotated_marks(text, message.get("annotations"))


def _documents(call: Call, message: JsonObject) -> tuple[tuple[Document, ...] | None, JsonObject]:
    """The passages, and what is to be said of them as evidence. What the row itself calls passages is all there is."""
    if call.logged is not None:
        return None, {}
    if (given := read_documents(call.request.get("documents"))) is not None or (given := tool_passages(call)):
        return given, {}
    if found := objects_in(call.response.get("search_results")):
        return tuple(map(_page, found)), SNIPPETS
    if pages := texts_in(call.response.get("citations")):
        return tuple(Document(id=page) for page in pages), SNIPPETS
    cited = [as_object(one.get("url_citation")) or one for one in objects_in(message.get("annotations"))]
    pages_cited = distinct(_page(one) for one in cited if as_text(one.get("url")) is not None)
    return (pages_cited, CITED_ONLY) if pages_cited else (None, {})


def _page(found: JsonObject) -> Document:
    places = ("start_index", "end_index", "url", "type")
    rest = {name: value for name, value in found.items() if name not in places}
    document = read_document({**rest, "id": found.get("url")})
    return document or Document()


_API = Api(_response, words=("choices",), request_names=("messages",))
