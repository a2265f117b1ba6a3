"""Flat rows: one object an exchange, under the names that evaluation libraries and loggers commonly use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import FieldNames, rename
from schemas.envelope import JsonObject
from schemas.headers import Headers

FLAT_NAMES = FieldNames(
    interaction_id=("interaction_id", "id", "request_id", "trace_id", "record_id"),
    app=("app", "application", "service", "project"),
    occurred_at=("occurred_at", "timestamp", "time", "created_at", "event_time"),
    question=("question", "query", "user_input", "input"),
    passages=("passages", "contexts", "retrieved_contexts", "retrieval_context", "documents", "context"),
    answer=("answer", "response", "output", "actual_output"),
    generator_model=("generator_model", "generator", "model", "model_name", "llm"),
    passage_id=("id", "doc_id", "document_id", "chunk_id"),
    passage_text=("text", "content", "page_content", "passage", "body"),
    passage_score=("score", "similarity", "relevance_score"),
    passage_metadata=("metadata", "meta"),
)


@dataclass(frozen=True, slots=True)
class FlatAdapter:
    """Reads any row that has an answer under one of the common names.

    Where a row has two names of one field (``question`` and ``query``), the one listed first is read and the other
    is kept as metadata.
    """

    name: str = "flat"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether there is a field for the answer."""
        return any(name in row for name in FLAT_NAMES.answer)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row under our names. Raises UnusablePayload (wrong_shape)."""
        return (rename(row, FLAT_NAMES),)
