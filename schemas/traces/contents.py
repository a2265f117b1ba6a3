"""What a step says by its inputs and outputs, where a system logs these as a program had them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from schemas.traces.documents import documents_beside_answer, documents_of, looks_retrieved
from schemas.traces.messages import Message
from schemas.traces.step import Step, StepKind
from schemas.traces.texts import answer_in, question_in
from schemas.values import as_object, as_parsed, as_text

# What programs call steps that retrieve, and steps that keep or order what was retrieved. No chain ends so.
_RETRIEVES = re.compile(r"retriev(?:e|al|er|ing)(?:[ _-]?(?:documents|docs|contexts?|chunks|passages|nodes))?$")
_RERANKS = re.compile(r"re[ _-]?rank|(?:grade|filter|compress)[ _-]?(?:documents|docs)$")
_HOLDS_OTHERS = (StepKind.CHAIN, None)
_DOCUMENTS = {StepKind.RETRIEVER, StepKind.RERANKER}


def with_contents(step: Step, given: JsonValue, gave: JsonValue, *, name: str | None = None) -> Step:
    """Return the step with what its inputs and outputs say; None for what is not logged, or not yet.

    JSON in strings is read. A step below the root that is not known to do anything but to hold others (a chain, a span)
    has retrieved if it gave documents and nothing else, or ranked those that it was given; ``name`` is what the program
    calls it, which may help.
    """
    kind = _kind(step, given, gave, (name or "").lower())
    said = _READERS[kind](step, given, gave)
    return step.model_copy(update={"kind": kind} | {name: value for name, value in said.items() if value is not None})


def _kind(step: Step, given: JsonValue, gave: JsonValue, name: str) -> StepKind | None:
    if step.kind in {*_DOCUMENTS, StepKind.LLM} or step.is_root:
        return step.kind
    reranks, retrieves = _RERANKS.search(name) is not None, _RETRIEVES.search(name) is not None
    if gave is None:
        # The name may come with the start of a step alone.
        may_retrieve = retrieves and step.kind in _HOLDS_OTHERS
    else:
        may_retrieve = looks_retrieved(gave, is_named=reranks or retrieves)
    if not may_retrieve:
        return step.kind
    return StepKind.RERANKER if reranks or _holds_documents(given) else StepKind.RETRIEVER


def _holds_documents(given: JsonValue) -> bool:
    """Whether documents are among the arguments: then those that come out are the same, ranked anew or fewer."""
    given = as_parsed(given)
    held = [given]
    if isinstance(given, dict):
        arguments, named = given.get("args"), given.get("kwargs")
        held += given.values()
        held += arguments if isinstance(arguments, list) else ()
        held += named.values() if isinstance(named, dict) else ()
    return any(looks_retrieved(one) for one in held)


def _documents(_: Step, given: JsonValue, gave: JsonValue) -> dict[str, object]:
    documents = documents_of(gave)
    # A function that joins what it found gives one text.
    whole = _text(answer_in(gave)) if documents is None and not isinstance(as_parsed(gave), list) else None
    return {"question": question_in(given), "documents": documents, "context": whole}


def _chain(step: Step, given: JsonValue, gave: JsonValue) -> dict[str, object]:
    said = {"question": question_in(given), **_said(answer_in(gave))}
    if step.is_root:
        said |= {"documents": documents_beside_answer(gave), "context": _context(gave)}
    return said


def _llm(_: Step, given: JsonValue, gave: JsonValue) -> dict[str, object]:
    fields = as_object(as_parsed(given)) or {}
    return {"prompt": question_in(given) or question_in(fields.get("prompts")), **_said(answer_in(gave))}


def _said(answer: Message | None) -> dict[str, object]:
    return {"answer": _text(answer), "thoughts": answer.thoughts if answer else None}


def _text(answer: Message | None) -> str | None:
    return as_text(answer.text) if answer else None


def _context(gave: JsonValue) -> str | None:
    fields = as_object(as_parsed(gave)) or {}
    return as_text(fields.get("context"))


def _unknown(_: Step, given: JsonValue, gave: JsonValue) -> dict[str, object]:
    """Another report of the step says which of these is meant."""
    return {"question": question_in(given), "documents": documents_of(gave), **_said(answer_in(gave))}


def _nothing(_: Step, given: JsonValue, gave: JsonValue) -> dict[str, object]:  # noqa: ARG001 - as the others
    return {}


_READERS: Mapping[StepKind | None, Callable[[Step, JsonValue, JsonValue], dict[str, object]]] = {
    StepKind.CHAIN: _chain,
    StepKind.RETRIEVER: _documents,
    StepKind.RERANKER: _documents,
    StepKind.LLM: _llm,
    StepKind.OTHER: _nothing,
    None: _unknown,
}
