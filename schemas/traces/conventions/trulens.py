"""TruLens since version 1.5, which traces with OpenTelemetry."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.attributes import first_given, first_text, people
from schemas.traces.convention import bare_step
from schemas.traces.documents import documents_of
from schemas.traces.span import Span
from schemas.traces.step import Document, Step, StepKind
from schemas.traces.texts import answer_in, question_in
from schemas.values import as_number, as_parsed, as_text

PREFIX = "ai.observability."
_TYPE = f"{PREFIX}span_type"
_APP = f"{PREFIX}app_name"
_MODEL = f"{PREFIX}cost.model"
_INPUT = f"{PREFIX}record_root.input"
_OUTPUT = f"{PREFIX}record_root.output"
_RETURNED = f"{PREFIX}call.return"
_QUERIES = (f"{PREFIX}retrieval.query_text", f"{PREFIX}reranking.query_text")
_CONTEXTS = f"{PREFIX}retrieval.retrieved_contexts"
_RANKED = f"{PREFIX}reranking.output_context_texts"
_RANKED_SCORES = f"{PREFIX}reranking.output_context_scores"
_KEPT = {"record_id": f"{PREFIX}record_id", "app_version": f"{PREFIX}app_version", "run": f"{PREFIX}run.name"}

_KINDS = {
    "record_root": StepKind.CHAIN,
    "nested_record_root": StepKind.CHAIN,
    "agent": StepKind.CHAIN,
    "workflow_step": StepKind.CHAIN,
    "graph_node": StepKind.CHAIN,
    "graph_task": StepKind.CHAIN,
    "retrieval": StepKind.RETRIEVER,
    "reranking": StepKind.RERANKER,
    "generation": StepKind.LLM,
}


@dataclass(frozen=True, slots=True)
class TruLens:
    """Reads the spans of records. What was retrieved is a list of texts, without ids."""

    name: str = "trulens"

    def matches(self, span: Span) -> bool:
        """Whether the span has an attribute of TruLens."""
        return any(name.startswith(PREFIX) for name in span.attributes)

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        step, attributes = bare_step(span), span.attributes
        kind = _kind(attributes)
        return step.model_copy(
            update={
                "kind": kind,
                "app": first_text(attributes, (_APP,)) or first_text(span.resource, (_APP,)) or step.app,
                "metadata": _metadata(attributes),
                **_told(kind, attributes),
            }
        )


def _kind(attributes: JsonObject) -> StepKind:
    kind = as_text(attributes.get(_TYPE))
    if kind is not None:
        return _KINDS.get(kind.rpartition(".")[2].lower(), StepKind.OTHER)
    return StepKind.RETRIEVER if _CONTEXTS in attributes else StepKind.OTHER


def _told(kind: StepKind, attributes: JsonObject) -> dict[str, object]:
    if kind is StepKind.RETRIEVER:
        return {"question": first_text(attributes, _QUERIES), "documents": _texts(attributes.get(_CONTEXTS))}
    if kind is StepKind.RERANKER:
        return {"question": first_text(attributes, _QUERIES), "documents": _ranked(attributes)}
    answer = answer_in(first_given(attributes, (_OUTPUT,) if kind is StepKind.CHAIN else (_RETURNED,)))
    told: dict[str, object] = {
        "answer": answer.text if answer else None,
        "thoughts": answer.thoughts if answer else None,
    }
    if kind is StepKind.CHAIN:
        return {**told, "question": question_in(attributes.get(_INPUT))}
    return {**told, "model": first_text(attributes, (_MODEL,))} if kind is StepKind.LLM else {}


def _texts(logged: JsonValue) -> tuple[Document, ...] | None:
    documents = documents_of(logged)
    text = as_text(as_parsed(logged))
    return (Document(text=text),) if documents is None and text is not None else documents


def _ranked(attributes: JsonObject) -> tuple[Document, ...] | None:
    documents = _texts(attributes.get(_RANKED))
    scores = as_parsed(attributes.get(_RANKED_SCORES))
    if documents is None or not isinstance(scores, list) or len(scores) != len(documents):
        return documents
    return tuple(
        document.model_copy(update={"score": as_number(score)})
        for document, score in zip(documents, scores, strict=True)
    )


def _metadata(attributes: JsonObject) -> JsonObject:
    kept: JsonObject = {name: text for name, logged in _KEPT.items() if (text := as_text(attributes.get(logged)))}
    return {**kept, **people(attributes)}
