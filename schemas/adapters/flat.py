"""Flat rows: one object an exchange, under the names that evaluation libraries and loggers commonly use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import FieldNames, rename
from schemas.adapters.spelling import respelled
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.traces.documents import read_documents
from schemas.values import as_object

FLAT_NAMES = FieldNames(
    interaction_id=("interaction_id", "id", "request_id", "trace_id", "record_id", "exchange_id", "response_id"),
    app=("app", "application", "service", "project", "app_name", "application_name", "service_name", "project_name"),
    occurred_at=("occurred_at", "timestamp", "time", "created_at", "event_time", "@timestamp", "datetime"),
    question=(
        *("question", "query", "user_input", "input", "user_query", "user_question", "input_query", "query_text"),
        *("question_text", "request", "user_message"),
    ),
    passages=(
        *("passages", "contexts", "retrieved_contexts", "retrieval_context", "documents", "context"),
        *("retrieved_context", "retrieved_documents", "retrieved_docs", "retrieved_passages", "retrieved_chunks"),
        *("retrieved_texts", "retrieval_contexts", "retrieval_results", "retrieval_documents", "source_documents"),
        *("source_nodes", "retriever_resources", "context_documents", "context_docs", "context_list"),
        *("search_results", "retrieved", "chunks", "docs", "ctxs", "ResultItems", "retrievalResults"),
    ),
    answer=(
        *("answer", "response", "output", "actual_output", "result", "generated_answer", "generated_text"),
        *("generated_response", "generation", "final_answer", "prediction", "predicted_answer", "model_answer"),
        *("model_output", "model_response", "llm_answer", "llm_output", "llm_response", "bot_response"),
        *("assistant_response", "answer_text", "response_text", "output_text", "completion", "reply"),
        *("agent_answer", "agent_response", "ai_response", "chatbot_response"),
    ),
    generator_model=("generator_model", "generator", "model", "model_name", "llm", "llm_model", "model_id"),
    passage_ids=(
        *("retrieved_context_ids", "context_ids", "passage_ids", "document_ids", "doc_ids", "chunk_ids"),
        *("retrieved_document_ids", "retrieved_doc_ids", "retrieved_ids", "retrieved_chunk_ids"),
    ),
    passage_scores=(
        *("retrieved_context_scores", "context_scores", "passage_scores", "document_scores", "doc_scores"),
        *("chunk_scores", "retrieval_scores", "retrieved_scores", "similarity_scores"),
    ),
)

# Under these names there may be a title, a file's name or an address in the place of evidence: what is under the first
# ones must be sentences, under the others documents that have a text.
_SENTENCES = ("document", "passage", "knowledge", "evidence", "evidences", "snippets", "nodes")
_OBJECTS = ("sources", "source", "references")
# Dify has them in the metadata.
_IN_METADATA = "retriever_resources"
_PROMPT = "prompt"
_MAX_PROMPT_CHARS = 4_000
_MARK_CHARS = 100


@dataclass(frozen=True, slots=True)
class FlatAdapter:
    """Reads any row that has an answer and passages under one of the common names, however they are capitalised.

    Where a row has two names of one field (``question`` and ``query``), the one listed first is read, if it says
    something, and the other is kept as metadata.
    """

    name: str = "flat"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether there are fields for the answer and for the passages."""
        row = spelled(row)
        return any(name in row for name in FLAT_NAMES.answer) and any(name in row for name in FLAT_NAMES.passages)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row under our names. Raises UnusablePayload (wrong_shape)."""
        return (_asked(rename(spelled(row), FLAT_NAMES)),)


def spelled(row: JsonObject) -> JsonObject:
    """The row under the names that are read; a conversation stands for the question that it ends with."""
    row = respelled(row, (*FLAT_NAMES.all, *_SENTENCES, *_OBJECTS))
    is_asked = any(name in row for name in FLAT_NAMES.question)
    if not is_asked and any(name in row for name in FLAT_NAMES.answer) and isinstance(row.get("messages"), list):
        row = _as(row, "messages", FLAT_NAMES.question[0])
    if any(name in row for name in FLAT_NAMES.passages):
        return row
    metadata = row.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get(_IN_METADATA), list):
        rest = {name: value for name, value in metadata.items() if name != _IN_METADATA}
        return {**row, "metadata": rest, _IN_METADATA: metadata[_IN_METADATA]}
    name = next((name for name in (*_SENTENCES, *_OBJECTS) if _is_evidence(row.get(name), name)), None)
    return row if name is None else _as(row, name, FLAT_NAMES.passages[0])


def _as(row: JsonObject, name: str, other: str) -> JsonObject:
    return {other if key == name else key: value for key, value in row.items()}


def _is_evidence(logged: JsonValue, name: str) -> bool:
    listed: list[JsonValue] = logged if isinstance(logged, list) else [logged]
    documents = read_documents(listed)
    if not documents or any(document.text is None for document in documents):
        return False
    if name in _OBJECTS:
        return all(isinstance(one, dict) for one in listed)
    return any(len((document.text or "").split()) > 1 or not (document.text or "").isascii() for document in documents)


def _asked(native: JsonObject) -> JsonObject:
    """The exchange with its prompt as the question, if the row has no other, and the prompt holds no passage."""
    metadata = as_object(native["metadata"]) or {}
    prompt = metadata.get(_PROMPT)
    if native["question"] or not isinstance(prompt, str) or len(prompt) > _MAX_PROMPT_CHARS:
        return native
    passages = native["passages"] if isinstance(native["passages"], list) else []
    texts = [str(one["text"]).strip() for one in passages if isinstance(one, dict)]
    if any(text and text[:_MARK_CHARS] in prompt for text in texts):
        return native
    rest = {name: value for name, value in metadata.items() if name != _PROMPT}
    return {**native, "question": prompt, "metadata": rest}
