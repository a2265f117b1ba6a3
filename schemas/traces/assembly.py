"""What exchanges the steps of a trace make: the same ones, in whatever order and however often the steps came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.envelope import JsonObject
from schemas.interaction import MAX_PASSAGES
from schemas.skip_reason import SkipReason
from schemas.thoughts import THOUGHTS
from schemas.traces.answer import Answer, answer_of, prompt_of
from schemas.traces.merging import merged_steps
from schemas.traces.parts import Part, joined, parts_of
from schemas.traces.passages import Passages, passages_of
from schemas.traces.step import Step, StepKind
from schemas.traces.tree import Tree, grown
from schemas.values import merged

# Some systems say it of every step and some of any.
_SHARED_METADATA = ("user", "session", "tags")
# What is left of a prompt without its evidence: an instruction.
_MIN_EVIDENCE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Assembly:
    """The exchanges of a trace in native form, or the ``reason`` why there are none.

    ``is_complete``: the root is there and over, and every parent that is named was seen. ``wanted`` are the ids of
    documents whose texts would make more of the trace: look them up, and assemble again.
    """

    exchanges: tuple[JsonObject, ...] = ()
    reason: SkipReason | None = None
    is_complete: bool = False
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of one part of a trace."""

    exchange: JsonObject | None = None
    reason: SkipReason | None = None
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Passages in native form, what has to be said of where they are from, and ids of documents to look up."""

    passages: tuple[JsonObject, ...]
    remarks: JsonObject
    wanted: tuple[str, ...] = ()


def assemble(steps: Iterable[Step], trace_id: str, texts: Mapping[str, str] | None = None) -> Assembly:
    """Return what the steps of one trace say. Takes linear time, but for sorting.

    ``texts`` has what documents say that the trace only names, by their ids.
    """
    tree = grown(merged_steps(steps))
    outcomes = [
        _outcome(part, answer, number, trace_id, texts or {}) for number, (part, answer) in enumerate(_answered(tree))
    ]
    exchanges = tuple(outcome.exchange for outcome in outcomes if outcome.exchange is not None)
    wanted = dict.fromkeys(document_id for outcome in outcomes for document_id in outcome.wanted)
    return Assembly(exchanges, None if exchanges else _reason(outcomes), tree.is_whole, tuple(wanted))


def _answered(tree: Tree) -> list[tuple[Part, Answer | None]]:
    """The parts in order of time, with their answers.

    What has no chain above it, or no answer though it did not fail, is one part with the rest of the trace: a step
    between them was not logged, or not seen.
    """
    closed: list[tuple[Part, Answer | None]] = []
    open_parts = []
    for part in parts_of(tree):
        answer = None if part.root is None else answer_of(part)
        if answer is not None or _has_failed(part):
            closed.append((part, answer))
        else:
            open_parts.append(part)
    if open_parts:
        rest = joined(tree, open_parts, [part for part, _ in closed])
        closed.append((rest, answer_of(rest)))
    positions = {step.id: position for position, step in enumerate(tree.steps)}
    return sorted(closed, key=lambda pair: positions[pair[0].first.id])


def _has_failed(part: Part) -> bool:
    return part.root is not None and bool(part.root.has_failed)


def _outcome(part: Part, answer: Answer | None, number: int, trace_id: str, texts: Mapping[str, str]) -> _Outcome:
    if answer is None:
        return _Outcome(reason=SkipReason.NO_ANSWER)
    question = _question(part)
    found = passages_of(part.found, texts)
    evidence = _evidence(part, found, question)
    if evidence is None:
        return _Outcome(reason=SkipReason.PASSAGES_WITHOUT_TEXT, wanted=found.named)
    exchange: JsonObject = {
        "interaction_id": trace_id if number == 0 else f"{trace_id}:{part.first.id}",
        "app": _app(part),
        "occurred_at": answer.given_ns,
        "question": question,
        "passages": list(evidence.passages),
        "answer": answer.text,
        "generator_model": answer.model,
        "metadata": _metadata(part, answer, trace_id, evidence.remarks),
    }
    return _Outcome(exchange, wanted=evidence.wanted)


def _evidence(part: Part, found: Passages, question: str) -> _Evidence | None:
    """What the answer can lean on: texts of documents; without any, what the model was told. None if it is unknown."""
    if found.listed:
        missing = len(found.without_text)
        return _Evidence(found.listed, {"passages_without_text": missing} if missing else {}, found.named)
    if not found.without_text and all(step.documents is not None or step.has_failed for step in part.found):
        return _Evidence((), {})
    told = _context(part) or _prompt_without(prompt_of(part), question)
    if told is None:
        return None
    retrieved: JsonObject = {"retrieved_ids": list(found.named[:MAX_PASSAGES])} if found.named else {}
    return _Evidence(({"id": "ctx-1", "text": told},), {"evidence": "prompt", **retrieved})


def _context(part: Part) -> str | None:
    contexts = [step.context for step in part.steps if step.context and step.context.strip()]
    return contexts[-1] if contexts else None


def _prompt_without(prompt: str | None, question: str) -> str | None:
    """The prompt less the question, which is in it once more than in the evidence and mostly behind that."""
    if prompt is None:
        return None
    before, _, after = prompt.rpartition(question) if question else ("", "", prompt)
    left = f"{before}{after}".strip()
    return left if len(left) >= _MIN_EVIDENCE_CHARS else None


def _question(part: Part) -> str:
    """The uppermost question on the way to what was found, else the query, else what a chain or a model was asked."""
    queries = (step.question for step in part.found)
    chains = (step.question for step in part.steps if step.kind is StepKind.CHAIN)
    models = (step.question for step in part.steps if step.kind is StepKind.LLM)
    return next((question for question in (part.question, *queries, *chains, *models) if question), "")


def _app(part: Part) -> str | None:
    return next((step.app for step in (part.first, part.top, *part.steps) if step.app), None)


def _metadata(part: Part, answer: Answer, trace_id: str, remarks: JsonObject) -> JsonObject:
    """What is known besides: of the root and the top; users, sessions and tags of any step."""
    ours: JsonObject = {"trace_id": trace_id, "span_id": part.first.id, **remarks}
    if answer.thoughts:
        ours[THOUGHTS] = answer.thoughts
    shared: JsonObject = {}
    for name in _SHARED_METADATA:
        value = next((step.metadata[name] for step in part.steps if step.metadata.get(name)), None)
        if value is not None:
            shared[name] = value
    return merged(ours, {**shared, **part.top.metadata, **(part.root.metadata if part.root else {})})


def _reason(outcomes: list[_Outcome]) -> SkipReason:
    """Why there is no exchange: what a person can do most about."""
    reasons = {outcome.reason for outcome in outcomes}
    known = (SkipReason.PASSAGES_WITHOUT_TEXT, SkipReason.NO_ANSWER)
    return next((reason for reason in known if reason in reasons), SkipReason.NOT_RAG)
