"""The answer of a part of a trace, and the evidence in what its model was told."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.traces.parts import Part
from schemas.traces.step import Step, StepKind


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer, the model's thoughts that were not shown, the model if it is named, and when it was given, in ns."""

    text: str
    thoughts: str | None
    model: str | None
    given_ns: int | None


def answer_of(part: Part) -> Answer | None:
    """Return what the root answered, else what a model said last of what it said after documents were found."""
    if part.root is not None and part.root.has_failed:
        return None
    generations = _generations(part)
    if part.root is not None and _is_answer(part, part.root.answer, generations):
        return _answered(part, part.root, generations)
    return _answered(part, generations[-1], generations) if generations else None


def prompt_of(part: Part) -> str | None:
    """Return what a model was told last."""
    told = [step.prompt for step in _by_end(part.steps) if step.kind is StepKind.LLM and step.prompt]
    return told[-1] if told else None


def _answered(part: Part, step: Step, generations: list[Step]) -> Answer:
    """What the step said. Its model is that of the last generation that said the same, else of the last.

    It was given when the root was over, or the step; where neither has an end, when a model was, or the root began.
    """
    text = step.answer or ""
    same = [one for one in generations if (one.answer or "").strip() == text.strip()]
    models = [one.model for one in (step, *generations, *same) if one.model]
    thoughts = [one.thoughts for one in (*same, step) if one.thoughts]
    ends = [one.ended_ns for one in (part.root, step, *reversed((*generations, *same))) if one and one.ended_ns]
    given_ns = ends[0] if ends else part.first.begun_ns
    return Answer(text, thoughts[-1] if thoughts else None, models[-1] if models else None, given_ns)


def _generations(part: Part) -> list[Step]:
    """The steps of models that said something and began after the first documents were there, by their end.

    Before that, models rewrite the question. Where clocks differ, or say nothing, all that is below a root counts.
    """
    said = [
        step
        for step in _by_end(part.steps)
        if step.kind is StepKind.LLM and not step.has_failed and step.answer and step.answer.strip()
    ]
    ends = [step.ended_ns for step in part.found if step.ended_ns is not None]
    after = [step for step in said if not ends or step.begun_ns is None or step.begun_ns >= min(ends)]
    return after if after or part.is_severed else said


def _by_end(steps: tuple[Step, ...]) -> list[Step]:
    return sorted(steps, key=lambda step: (step.ended_ns or step.begun_ns or 0, step.begun_ns or 0, step.id))


def _is_answer(part: Part, text: str | None, generations: list[Step]) -> bool:
    """Whether what a root gave is the answer. Below steps that are missing it may be evidence that it handed on."""
    if text is None or not text.strip():
        return False
    if not part.is_severed:
        return True
    if generations or not part.is_joined:
        return bool(generations) and not part.is_joined
    found = [document.text for step in part.found for document in step.documents or () if document.text]
    return not (found and all(one in text for one in found))
