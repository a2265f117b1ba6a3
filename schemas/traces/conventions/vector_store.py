"""Queries of vector stores, as the instrumentors of OpenLLMetry write them: one event for each hit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.traces.convention import bare_step
from schemas.traces.documents import read_document
from schemas.traces.span import Span
from schemas.traces.step import Document, Step, StepKind
from schemas.values import as_number

_HITS = ("db.query.result", "db.search.result")
_COUNTS = ("db.vector.query.result_count", "db.milvus.search.result_count", "db.pinecone.query.result_count")

_WANTED = "db.chroma.query.n_results"
_QUERIES = ("db.chroma.query.embeddings_count", "db.chroma.query.texts_count")


@dataclass(frozen=True, slots=True)
class VectorStore:
    """Reads spans with hits, and those that count none. A distance is no score: there, less is better."""

    name: str = "vector_store"

    def matches(self, span: Span) -> bool:
        """Whether the span queried a store."""
        return any(event.name in _HITS for event in span.events) or any(name in span.attributes for name in _COUNTS)

    def step(self, span: Span) -> Step:
        """Say what the span found."""
        documents = tuple(_documents(span))
        found_none = any(as_number(span.attributes.get(name)) == 0 for name in _COUNTS)
        is_known = found_none if not documents else not _has_first_hits_only(span)
        return bare_step(span).model_copy(
            update={"kind": StepKind.RETRIEVER, "documents": documents if is_known else None}
        )


def _has_first_hits_only(span: Span) -> bool:
    """Whether the other hits may be missing: for Chroma, older versions wrote one event for each query."""
    queries = max(as_number(span.attributes.get(name)) or 1 for name in _QUERIES)
    hits = sum(event.name in _HITS for event in span.events)
    return (as_number(span.attributes.get(_WANTED)) or 1) > 1 and hits <= queries


def _documents(span: Span) -> Iterator[Document]:
    for event in span.events:
        if event.name in _HITS:
            hit = {
                name: event.attributes.get(f"{event.name}.{name}") for name in ("id", "document", "score", "metadata")
            }
            document = read_document(hit)
            if document is not None:
                yield document
