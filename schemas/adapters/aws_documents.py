"""What Amazon Kendra and Bedrock retrieved, as their APIs write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.step import Document
from schemas.values import as_identifier, as_number, as_object, as_text, merged

_CHUNK_ID = "x-amz-bedrock-kb-chunk-id"
_PLACES = ("uri", "url", "id", "query")


@dataclass(frozen=True, slots=True)
class RetrievedList:
    """How an API lists what it retrieved: the name of the list, what tells an item of it, and how that is read."""

    name: str
    is_item: Callable[[JsonObject], bool]
    read: Callable[[JsonObject], Document]


def documents_in(logged: JsonValue, lists: Sequence[RetrievedList]) -> tuple[Document, ...] | None:
    """Return the documents of a list that one of the APIs wrote, bare or in its response; None if it is none."""
    for kind in lists:
        inner = logged.get(kind.name) if isinstance(logged, dict) else logged
        if not isinstance(inner, list) or (isinstance(logged, list) and not inner):
            continue
        if all(isinstance(item, dict) and kind.is_item(item) for item in inner):
            return tuple(kind.read(item) for item in inner if isinstance(item, dict))
    return None


def bedrock_document(reference: JsonObject) -> Document:
    """Read a retrieval result or a retrieved reference. Without text it is of a picture."""
    metadata = as_object(reference.get("metadata")) or {}
    place = _place(as_object(reference.get("location")) or {})
    kept: JsonObject = {name: value for name, value in metadata.items() if name != _CHUNK_ID}
    return Document(
        text=_text(as_object(reference.get("content")) or {}),
        id=as_identifier(metadata.get(_CHUNK_ID)) or as_identifier(reference.get("documentId")) or place,
        score=as_number(reference.get("score")),
        metadata=merged(kept, {"location": place} if place else {}),
    )


def _text(content: JsonObject) -> str | None:
    """A text, the transcript of what was spoken, or a row of a table, column by column."""
    if isinstance(text := content.get("text"), str):
        return text
    for name in ("audio", "video"):
        spoken = as_object(content.get(name)) or {}
        if (transcript := as_text(spoken.get("transcription")) or as_text(spoken.get("summary"))) is not None:
            return transcript
    row = content.get("row")
    cells = [cell for cell in row if isinstance(cell, dict)] if isinstance(row, list) else []
    return "\n".join(f"{cell.get('columnName')}: {cell.get('columnValue')}" for cell in cells) or None


def _place(location: JsonObject) -> str | None:
    """Where the document lies: each kind of store has an object of its own for that."""
    inner = [value for value in location.values() if isinstance(value, dict)]
    places = (as_identifier(value.get(name)) for value in inner for name in _PLACES)
    return next((place for place in places if place is not None), None)


def _kendra_document(item: JsonObject) -> Document:
    excerpt = as_object(item.get("DocumentExcerpt")) or {}
    title = item.get("DocumentTitle")
    scores = as_object(item.get("ScoreAttributes")) or {}
    facts: JsonObject = {
        "title": title.get("Text") if isinstance(title, dict) else title,
        "source": item.get("DocumentURI"),
        "document_id": item.get("DocumentId"),
        "confidence": scores.get("ScoreConfidence"),
        "attributes": item.get("DocumentAttributes"),
    }
    return Document(
        text=as_text(item.get("Content")) or as_text(excerpt.get("Text")),
        id=as_identifier(item.get("Id")) or as_identifier(item.get("DocumentId")),
        metadata={name: value for name, value in facts.items() if value not in (None, [])},
    )


def _is_kendra(item: JsonObject) -> bool:
    has_text = isinstance(item.get("Content"), str) or isinstance(item.get("DocumentExcerpt"), dict)
    return has_text and any(name in item for name in ("DocumentId", "DocumentURI", "DocumentTitle", "ScoreAttributes"))


def _is_bedrock(item: JsonObject) -> bool:
    return isinstance(item.get("content"), dict) and any(name in item for name in ("location", "score"))


KENDRA = RetrievedList("ResultItems", _is_kendra, _kendra_document)
BEDROCK = RetrievedList("retrievalResults", _is_bedrock, bedrock_document)
