"""The passages of an exchange, out of what its retrievers and rerankers say that they found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from schemas.envelope import JsonObject
from schemas.traces.documents import completed, is_placed
from schemas.traces.step import Document, Step, StepKind


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages in native form, and the ids, None if there is none, of documents that are without what they say."""

    listed: tuple[JsonObject, ...]
    without_text: tuple[str | None, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The ids of those that have one."""
        return tuple(document_id for document_id in self.without_text if document_id is not None)


def passages_of(steps: Sequence[Step], texts: Mapping[str, str]) -> Passages:
    """Return what retrieving steps, in order of time, have found, each document once.

    ``texts`` has what documents say that the log only names, by their ids.
    """
    found = [_read(document, texts) for documents in _seen(steps) for document in documents]
    told = _distinct([document for document in found if document.text is not None])
    told_ids = {document.id for document in told} - {None}
    named = dict.fromkeys(document.id for document in found if document.text is None)
    return Passages(
        tuple(_passage(document, number) for number, document in enumerate(told, start=1)),
        tuple(document_id for document_id in named if document_id not in told_ids),
    )


def _seen(steps: Sequence[Step]) -> Iterable[tuple[Document, ...]]:
    """The lists that went on to the model.

    A reranker was given what retrievers found before it and no other reranker was given; or what another one left, if
    that has all of its documents.
    """
    kept: dict[int, tuple[Document, ...]] = {}
    retrieved: list[int] = []
    rankings: dict[str, int] = {}
    for place, step in enumerate(steps):
        if step.documents is None:
            continue
        if step.kind is StepKind.RERANKER:
            for given in retrieved or _ranked_before(step.documents, rankings, kept):
                del kept[given]
            retrieved = []
            rankings.update((key, place) for document in step.documents for key in _keys(document))
        else:
            retrieved.append(place)
        kept[place] = step.documents
    return kept.values()


def _ranked_before(
    documents: tuple[Document, ...], rankings: Mapping[str, int], kept: Mapping[int, tuple[Document, ...]]
) -> Iterable[int]:
    """The reranker, if there is one, that left all of the documents."""
    places = {rankings.get(key, -1) for document in documents[:1] for key in _keys(document)}
    for place in sorted(places & kept.keys()):
        left = {key for document in kept[place] for key in _keys(document)}
        if all(not left.isdisjoint(_keys(document)) for document in documents):
            return (place,)
    return ()


def _keys(document: Document) -> set[str]:
    """What tells a document from others: its id, and its text."""
    named = set() if document.id is None else {f"id {document.id}"}
    return named if document.text is None else {*named, f"text {document.text}"}


def _read(document: Document, texts: Mapping[str, str]) -> Document:
    """The document with what its metadata say of it, and with its text, if that is known by its id."""
    document = completed(document)
    if document.text is not None or document.id is None or document.id not in texts:
        return document
    return document.model_copy(update={"text": texts[document.id]})


def _distinct(documents: Sequence[Document]) -> list[Document]:
    """Each id with the same text once. A text without an id of its own is the same as one with any."""
    named = {document.text for document in documents if _has_own_id(document)}
    distinct: dict[tuple[str | None, str | None], Document] = {}
    for document in documents:
        if _has_own_id(document) or document.text not in named:
            distinct.setdefault((document.id, document.text), document)
    return list(distinct.values())


def _has_own_id(document: Document) -> bool:
    return document.id is not None and not is_placed(document)


def _passage(document: Document, number: int) -> JsonObject:
    return {
        "id": document.id or f"ctx-{number}",
        "text": document.text or "",
        "score": document.score,
        "metadata": document.metadata,
    }
