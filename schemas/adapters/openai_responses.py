"""OpenAI's Responses API, with the results of file search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.call import (
    Api,
    Call,
    Said,
    call_of,
    distinct,
    exchange,
    has_response,
    objects_in,
    texts_in,
    tool_documents,
)
from schemas.adapters.citation_marks import cut_marks
from schemas.adapters.openai_marks import annotated_marks
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.documents import read_document
from schemas.traces.messages import last_question, read_messages
from schemas.traces.step import Document
from schemas.values import as_object, as_text

_MISSING = "no file_search_call with results; send include=['file_search_call.results'], or passages beside it"


@dataclass(frozen=True, slots=True)
class OpenAiResponsesAdapter:
    """Reads a response, with the request beside it or without: then the question is absent.

    Results of file search are there only if the request asked for them to be included. What other tools gave is in the
    request's input, or in calls of MCP servers.
    """

    name: str = "openai_responses"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a response, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say that the model has not answered. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        answer, marks = _answer(call.response)
        if not answer.strip():
            return (SkipReason.NO_ANSWER,)
        said = Said(
            answer,
            _documents(call),
            question=_question(call.request.get("input")),
            marks=cut_marks(answer, marks),
            id=call.response.get("id"),
            model=call.response.get("model"),
            time=call.response.get("created_at"),
            thoughts=_thoughts(call.response),
            queries=[query for item in _items(call, "file_search_call") for query in texts_in(item.get("queries"))],
            metadata=as_object(call.response.get("metadata")) or {},
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        return None
    is_response = value.get("object") == "response" or any(_parts(item) for item in objects_in(value["output"]))
    return value if is_response else None


def _parts(item: JsonObject) -> list[JsonObject]:
    """The parts of a message that the model shows."""
    parts = objects_in(item.get("content")) if item.get("type") == "message" else []
    return [part for part in parts if part.get("type") in ("output_text", "refusal")]


def _answer(response: JsonObject) -> tuple[str, list[tuple[int, int]]]:
    """The texts of all messages as one, as the SDK has them, and the marks in it. Commentary on the way is none."""
    texts: list[str] = []
    marks: list[tuple[int, int]] = []
    length = 0
    shown = [item for item in objects_in(response.get("output")) if item.get("phase") != "commentary"]
    for part in (part for item in shown for part in _parts(item)):
        text = part.get("text") if part.get("type") == "output_text" else part.get("refusal")
        if isinstance(text, str):
            marks += annotated_marks(text, part.get("annotations"), length)
            texts.append(text)
            length += len(text)
    return "".join(texts), marks


def _items(call: Call, kind: str) -> list[JsonObject]:
    return [item for item in objects_in(call.response.get("output")) if item.get("type") == kind]


def _documents(call: Call) -> tuple[Document, ...] | None:
    """What file search found, in all its calls; else what the row has; else what other tools gave."""
    results = [item["results"] for item in _items(call, "file_search_call") if isinstance(item.get("results"), list)]
    if results:
        return distinct(_result(one) for found in results for one in objects_in(found))
    return None if call.logged is not None else tuple(_of_tools(call)) or None


def _result(logged: JsonObject) -> Document:
    named: JsonObject = {"id": logged.get("file_id"), "metadata": logged.get("attributes")}
    rest = {name: value for name, value in logged.items() if name not in ("file_id", "attributes")}
    return read_document({**rest, **named}) or Document()


def _of_tools(call: Call) -> Iterator[Document]:
    given = objects_in(call.request.get("input"))
    outputs = [item.get("output") for item in given if item.get("type") == "function_call_output"]
    for output in (*outputs, *(item.get("output") for item in _items(call, "mcp_call"))):
        if isinstance(output, str):
            yield from tool_documents(output)


def _question(given: JsonValue) -> str | None:
    return as_text(given) if isinstance(given, str) else last_question(read_messages(given))


def _thoughts(response: JsonObject) -> str | None:
    steps = [item for item in objects_in(response.get("output")) if item.get("type") == "reasoning"]
    parts = [part for item in steps for name in ("summary", "content") for part in objects_in(item.get(name))]
    return "\n".join(text for part in parts if (text := as_text(part.get("text"))) is not None) or None


_API = Api(_response, words=("output",), request_names=("input", "instructions", "previous_response_id"))
