"""The AI SDK of Vercel, versions 3 to 6. Since version 7 it can follow OpenTelemetry's convention instead."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.payload import JsonObject
from schemas.traces.attributes import first_given, first_text, people
from schemas.traces.convention import bare_step
from schemas.traces.documents import documents_of, looks_retrieved
from schemas.traces.messages import last_question, read_messages
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind
from schemas.traces.texts import answer_in, question_in
from schemas.values import as_parsed, as_text

_OPERATION = "ai.operationId"
_PROMPT = "ai.prompt"
_MESSAGES = "ai.prompt.messages"
_TEXTS = ("ai.response.text", "ai.result.text")
_OBJECTS = ("ai.response.object", "ai.result.object")
_CALLS = ("ai.response.toolCalls", "ai.result.toolCalls")
_REASONING = ("ai.response.reasoning",)
_MODELS = ("ai.response.model", "ai.model.id")
_ARGUMENTS = "ai.toolCall.args"
_RESULT = "ai.toolCall.result"

_WHOLE = {"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"}
_TURNS = {f"{whole}.{turn}" for whole in _WHOLE for turn in ("doGenerate", "doStream")}
_TOOL = "ai.toolCall"


@dataclass(frozen=True, slots=True)
class Vercel:
    """Reads the calls of the SDK: each holds turns of the model and calls of tools, of which some retrieve."""

    name: str = "vercel_ai"

    def matches(self, span: Span) -> bool:
        """Whether the span is a call's, or a part of one."""
        return _OPERATION in span.attributes

    def step(self, span: Span) -> Step:
        """Say what the span did."""
        known: dict[str, object] = {"metadata": people(span.attributes)}
        operation = as_text(span.attributes[_OPERATION])
        if operation == _TOOL:
            known |= _tool(span.attributes)
        elif operation in _WHOLE:
            known |= {**_said(span.attributes), "kind": StepKind.CHAIN, "question": _question(span.attributes)}
        elif operation in _TURNS:
            prompt = last_question(read_messages(as_parsed(span.attributes.get(_MESSAGES))))
            model = first_text(span.attributes, _MODELS)
            known |= {**_said(span.attributes), "kind": StepKind.LLM, "prompt": prompt, "model": model}
        return bare_step(span).model_copy(update=known)


def _tool(attributes: JsonObject) -> dict[str, object]:
    """A tool retrieves if it gives a list of documents; nothing else tells."""
    result = attributes.get(_RESULT)
    if not looks_retrieved(result):
        return {}
    question = question_in(attributes.get(_ARGUMENTS))
    return {"kind": StepKind.RETRIEVER, "question": question, "documents": documents_of(result)}


def _said(attributes: JsonObject) -> dict[str, object]:
    calls = as_parsed(first_given(attributes, _CALLS))
    # Text beside calls of tools introduces them.
    text = None if calls else first_text(attributes, _TEXTS)
    answer = None if text else answer_in(first_given(attributes, _OBJECTS))
    return {"answer": text or (answer.text if answer else None), "thoughts": first_text(attributes, _REASONING)}


def _question(attributes: JsonObject) -> str | None:
    prompt = as_parsed(attributes.get(_PROMPT))
    asked = first_given(prompt, ("messages", "prompt")) if isinstance(prompt, dict) else prompt
    return question_in(asked)
