"""Responses of LlamaIndex, which hold no question: it is read where the caller logs it beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import is_empty, rename
from schemas.adapters.flat import FLAT_NAMES
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.values import as_object, as_text, merged

# In JavaScript in camel case, with the answer as a message.
_PASSAGES = ("source_nodes", "sourceNodes")
_ANSWERS = ("response", "answer", "message", "response_txt", "text", "output")
_NAMES = replace(FLAT_NAMES, passages=_PASSAGES, answer=_ANSWERS)


@dataclass(frozen=True, slots=True)
class LlamaIndexAdapter:
    """Reads what a query engine or a chat engine gives, as a dictionary of its fields."""

    name: str = "llamaindex"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether there are source nodes and a response."""
        return any(name in row for name in _PASSAGES) and any(name in row for name in _ANSWERS)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row under our names. The metadata say if the question is absent.

        Raises UnusablePayload (wrong_shape).
        """
        if all(is_empty(row.get(name)) for name in _PASSAGES) and (nodes := _of_tools(row.get("sources"))):
            row = {**row, _PASSAGES[0]: nodes}
        native = rename(row, _NAMES, likeness="a LlamaIndex response")
        return (native if native["question"] else without_question(native),)


def _of_tools(sources: JsonValue) -> list[JsonValue]:
    """What the tools of an agent gave: the nodes of a query engine, of others the text."""
    found: list[JsonValue] = []
    for source in sources if isinstance(sources, list) else ():
        given = source if isinstance(source, dict) else {}
        nodes = (as_object(given.get("raw_output")) or {}).get("source_nodes")
        if isinstance(nodes, list):
            found += nodes
        elif (text := as_text(given.get("content"))) is not None:
            found.append({"text": text})
    return found


def without_question(native: JsonObject) -> JsonObject:
    """Return an exchange in native form that says that its log holds no question."""
    metadata = native.get("metadata")
    return {**native, "metadata": merged({"question": "absent"}, metadata if isinstance(metadata, dict) else {})}
