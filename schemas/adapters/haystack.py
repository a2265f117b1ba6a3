"""Answers of Haystack, and results of its pipelines, where they lie below the names of components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import FieldNames, is_empty, rename
from schemas.adapters.flat import FLAT_NAMES
from schemas.adapters.llamaindex import without_question
from schemas.errors import UnusablePayload
from schemas.headers import Headers
from schemas.lines import MAX_ROWS
from schemas.payload import JsonObject
from schemas.reject_reason import RejectReason
from schemas.values import as_object, as_text, merged

_NAMES = replace(
    FLAT_NAMES, question=("query", "question"), passages=("documents", "document"), answer=("data", "answer")
)
_REPLIES = replace(FLAT_NAMES, passages=("documents",), answer=("replies",))
_LIKENESS = "a Haystack answer"
# Components that hand on the documents that the model saw, of those that others had found.
_CHOOSING = ("rank", "join", "merg", "filter")


@dataclass(frozen=True, slots=True)
class HaystackAdapter:
    """Reads generated and extracted answers, alone or as a pipeline's result, and replies without an answer builder.

    A pipeline with several answers to a query has one exchange, of the first: the others are further tries.
    """

    name: str = "haystack"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is an answer, has a list of answers, or holds components of which one has any."""
        if _is_answer(_bare(row)) or _answers(row):
            return True
        return any(_answers(part) or _replies(part) for part in _components(row))

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give one exchange for each component that has answers. Raises UnusablePayload: wrong_shape, too_many_rows."""
        if _is_answer(_bare(row)):
            return (_exchange(_bare(row), {}, _NAMES),)
        parts = [part for part in (row, *_components(row)) if _answers(part)]
        beside = {name: value for name, value in row.items() if as_object(value) is None and name != "answers"}
        documents = _documents(row)
        if documents is not None:
            beside["documents"] = documents
        if len(parts) > MAX_ROWS:
            raise UnusablePayload(RejectReason.TOO_MANY_ROWS, f"more than {MAX_ROWS} answers in one message")
        if parts:
            return tuple(_exchange(_answers(part)[0], beside, _NAMES) for part in parts)
        return tuple(_exchange(part, beside, _REPLIES) for part in _components(row) if _replies(part))


def _bare(row: JsonObject) -> JsonObject:
    """An answer that was written with the name of its class (Haystack 2.0 to 2.8) is in its parameters."""
    inner = as_object(row.get("init_parameters"))
    return inner if inner is not None and "type" in row else row


def _is_answer(logged: JsonObject) -> bool:
    has_documents = isinstance(logged.get("documents"), list) or "document" in logged
    return isinstance(logged.get("data"), str) and "query" in logged and has_documents


def _components(row: JsonObject) -> Iterator[JsonObject]:
    return (part for part in row.values() if isinstance(part, dict))


def _answers(part: JsonObject) -> list[JsonObject]:
    """The answers of a component; those of Haystack 1 have the text as ``answer``."""
    listed = part.get("answers")
    found = [_bare(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [one for one in found if isinstance(one.get("data"), str) or isinstance(one.get("answer"), str)]


def _replies(part: JsonObject) -> list[JsonValue]:
    replies = part.get("replies")
    return replies if isinstance(replies, list) else []


def _documents(row: JsonObject) -> JsonValue:
    """The documents of the row; else of the component that chose them last; else all that were found."""
    if isinstance(row.get("documents"), list):
        return row["documents"]
    found = {name: part["documents"] for name, part in row.items() if isinstance(part, dict) and "documents" in part}
    lists = [(name, listed) for name, listed in found.items() if isinstance(listed, list)]
    chosen = [listed for name, listed in lists if any(word in name.lower() for word in _CHOOSING)]
    if chosen:
        return chosen[-1]
    return _union([listed for _, listed in lists]) if lists else None


def _union(lists: list[list[JsonValue]]) -> JsonValue:
    first: dict[JsonValue, JsonValue] = {}
    for number, document in enumerate(document for listed in lists for document in listed):
        named = document.get("id") if isinstance(document, dict) else None
        first.setdefault(named if isinstance(named, str) else number, document)
    return [*first.values()]


def _exchange(answer: JsonObject, beside: JsonObject, names: FieldNames) -> JsonObject:
    """An answer, with what the row says beside it where it does not say so itself."""
    replies = _replies(answer)
    own = {**answer, "replies": replies[0]} if replies else answer
    if isinstance(own.get("document"), dict):
        # That which an extracted answer stands in.
        own = {**own, "documents": [own["document"]]}
    row: JsonObject = {**beside, **{name: one for name, one in own.items() if name not in beside or not is_empty(one)}}
    about = row.pop("meta", None)
    meta = as_object(about[0] if isinstance(about, list) and about else about) or {}
    native = rename({**row, "metadata": merged(as_object(row.get("metadata")) or {}, meta)}, names, likeness=_LIKENESS)
    native["generator_model"] = native["generator_model"] or as_text(meta.get("model"))
    return native if native["question"] else without_question(native)
