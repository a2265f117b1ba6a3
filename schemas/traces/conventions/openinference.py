"""OpenInference: what Phoenix, Arize and the instrumentors of that name write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.traces.attributes import first_text, numbered, people
from schemas.traces.convention import bare_step
from schemas.traces.documents import documents_beside_answer, documents_of, looks_retrieved, read_document
from schemas.traces.messages import Message, last_answer, last_question, read_messages
from schemas.traces.span import Span
from schemas.traces.step import Document, Step, StepKind
from schemas.traces.texts import answer_in, question_in
from schemas.values import as_object, as_parsed, as_text

_KIND = "openinference.span.kind"
_PROJECT = "openinference.project.name"
_INPUT = "input.value"
_OUTPUT = "output.value"
_RETRIEVED = "retrieval.documents"
_RANKED = "reranker.output_documents"
_SAID = "llm.output_messages"
_TOLD = "llm.input_messages"
_PROMPTS = "llm.prompts"
_VARIABLES = "llm.prompt_template.variables"
_MODEL = "llm.model_name"
_METADATA = "metadata"

_KINDS = {
    "CHAIN": StepKind.CHAIN,
    "AGENT": StepKind.CHAIN,
    "RETRIEVER": StepKind.RETRIEVER,
    "RERANKER": StepKind.RERANKER,
    "LLM": StepKind.LLM,
}
_TOOL = "TOOL"
_CONTEXTS = ("context", "context_str", "contexts", "documents", "docs", "passages", "sources")
# What stands where the settings of an instrumentor hide a text.
_HIDDEN = "__REDACTED__"


@dataclass(frozen=True, slots=True)
class OpenInference:
    """Reads spans that say their kind as OpenInference does. Lists may be flattened to attributes, or whole."""

    name: str = "openinference"

    def matches(self, span: Span) -> bool:
        """Whether the span has a kind of OpenInference."""
        return _KIND in span.attributes

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        attributes: JsonObject = {
            name: value for name, value in span.attributes.items() if value is not None and value != _HIDDEN
        }
        kind = _kind(attributes)
        step = bare_step(span)
        said = {
            StepKind.CHAIN: _chain,
            StepKind.LLM: _llm,
            StepKind.RETRIEVER: _retriever,
            StepKind.RERANKER: _reranker,
            StepKind.OTHER: _other,
        }[kind](attributes)
        return step.model_copy(
            update={
                "kind": kind,
                "app": first_text({**span.resource, **attributes}, (_PROJECT,)) or step.app,
                "metadata": {**_metadata(attributes), **people(attributes)},
                **said,
            }
        )


def _kind(attributes: JsonObject) -> StepKind:
    """A tool that gives documents retrieves; agents find with such tools."""
    name = str(attributes.get(_KIND)).upper()
    if name == _TOOL and (_documents(attributes, _RETRIEVED) or looks_retrieved(attributes.get(_OUTPUT))):
        return StepKind.RETRIEVER
    return _KINDS.get(name, StepKind.OTHER)


def _chain(attributes: JsonObject) -> dict[str, object]:
    """What the chain was asked and gave. Documents count beside an answer; elsewhere they are only handed on."""
    output = attributes.get(_OUTPUT)
    answer = answer_in(output)
    beside = documents_beside_answer(output) if answer else None
    return {
        "question": question_in(attributes.get(_INPUT)),
        "documents": _documents(attributes, _RETRIEVED) or beside or None,
        **_said(answer),
    }


def _llm(attributes: JsonObject) -> dict[str, object]:
    """The messages of a chat; without any, what a model that completes texts was given and gave."""
    told, said = _messages(attributes, _TOLD), _messages(attributes, _SAID)
    prompts = as_parsed(attributes.get(_PROMPTS))
    prompt = last_question(told) or question_in(prompts) or (None if told else question_in(attributes.get(_INPUT)))
    return {
        "prompt": prompt,
        "context": _context(attributes),
        "documents": _documents(attributes, _RETRIEVED) or None,
        "model": first_text(attributes, (_MODEL,)),
        **_said(last_answer(said) if said else answer_in(attributes.get(_OUTPUT))),
    }


def _retriever(attributes: JsonObject) -> dict[str, object]:
    return {"question": question_in(attributes.get(_INPUT)), "documents": _found(attributes, _RETRIEVED)}


def _reranker(attributes: JsonObject) -> dict[str, object]:
    return {"question": first_text(attributes, ("reranker.query",)), "documents": _found(attributes, _RANKED)}


def _other(attributes: JsonObject) -> dict[str, object]:
    return {"context": _context(attributes)}


def _said(answer: Message | None) -> dict[str, object]:
    return {"answer": as_text(answer.text) if answer else None, "thoughts": answer.thoughts if answer else None}


def _found(attributes: JsonObject, prefix: str) -> tuple[Document, ...] | None:
    """The documents of a list; without one, those of the output. Some instrumentors list no ids, which stand there."""
    listed, given = _documents(attributes, prefix), documents_of(attributes.get(_OUTPUT))
    if given is None or len(given) < len(listed):
        return listed or given
    if [one.text for one in listed] != [one.text for one in given[: len(listed)]]:
        return listed
    if len(given) > len(listed):
        # A span has room for so many attributes, and the rest of the list was dropped.
        return given
    are_named = any(_fields(row, "document").get("id") is not None for row in _rows(attributes, prefix))
    return tuple(_filled(one, other, is_named=are_named) for one, other in zip(listed, given, strict=True))


def _filled(document: Document, other: Document, *, is_named: bool) -> Document:
    """The document with what the output says of it. An id that is only one of the metadata gives way."""
    document_id = document.id or other.id if is_named else other.id or document.id
    return document.model_copy(
        update={
            "id": document_id,
            "score": other.score if document.score is None else document.score,
            "metadata": {**other.metadata, **document.metadata},
        }
    )


def _documents(attributes: JsonObject, prefix: str) -> tuple[Document, ...]:
    documents = (read_document(_fields(row, "document")) for row in _rows(attributes, prefix))
    return tuple(document for document in documents if document is not None)


def _messages(attributes: JsonObject, prefix: str) -> tuple[Message, ...]:
    return read_messages([_message(_fields(row, "message")) for row in _rows(attributes, prefix)])


def _message(fields: JsonObject) -> JsonObject:
    """A message whose parts and calls of tools may be flattened, too."""
    parts: list[JsonValue] = [_fields(part, "message_content") for part in _rows(fields, "contents")]
    calls: list[JsonValue] = list(_rows(fields, "tool_calls"))
    return {
        "role": fields.get("role"),
        "content": fields.get("content") or parts,
        "tool_calls": calls,
        "function_call": fields.get("function_call_name"),
    }


def _rows(attributes: JsonObject, prefix: str) -> list[JsonObject]:
    """The objects of a list: whole under its name, whole in objects for the parts of its name, or flattened."""
    whole = as_parsed(attributes.get(prefix))
    first, _, rest = prefix.partition(".")
    if whole is None and rest and isinstance(inner := attributes.get(first), dict):
        return _rows(inner, rest)
    if isinstance(whole, list):
        return [row for row in whole if isinstance(row, dict)]
    return numbered(attributes, prefix)


def _fields(row: JsonObject, name: str) -> JsonObject:
    """The fields of an object that is under its name, whole or with the name before each of them."""
    inner = row.get(name)
    if isinstance(inner, dict):
        return inner
    fields: JsonObject = {key.removeprefix(f"{name}."): value for key, value in row.items()}
    own = {key: value for key, value in fields.items() if not key.startswith(f"{_METADATA}.")}
    return {**own, _METADATA: _metadata(fields)}


def _metadata(fields: JsonObject) -> JsonObject:
    """The metadata, as an object, as JSON in a string, or with a name for each of its fields."""
    whole = as_object(as_parsed(fields.get(_METADATA))) or {}
    before = f"{_METADATA}."
    return {**whole, **{key[len(before) :]: value for key, value in fields.items() if key.startswith(before)}}


def _context(attributes: JsonObject) -> str | None:
    """The evidence among the variables of a prompt."""
    variables = as_object(as_parsed(attributes.get(_VARIABLES))) or {}
    texts: Iterable[str | None] = (as_text(variables.get(name)) for name in _CONTEXTS)
    return next((text for text in texts if text is not None), None)
