"""What one screen shows: a task with the asked sentence in its place, and what it has in common with the passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gasp_core.text.languages import Language, language_of
from schemas.review_label import Detail, Label
from schemas.review_task import ReviewTask, TaskSentence
from worker.page.marks import Piece, marked, telling_stems


@dataclass(frozen=True, slots=True)
class Choice:
    """A label that can be given: its value, the key that gives it, its name and what it means."""

    value: str
    key: str
    name: str
    meaning: str
    example: str = ""


LABELS = (
    Choice(
        Label.SUPPORTED,
        "1",
        "Supported",
        "The passages say it, in these or other words.",
        "Passage: “The museum opens at ten.” – “It opens at 10 o'clock.”",
    ),
    Choice(
        Label.UNSUPPORTED,
        "2",
        "Unsupported",
        "The passages do not say it, or say something else, whether it is true or not.",
        "Passage: “The museum opens at ten.” – “Entry is free.”",
    ),
    Choice(
        Label.PARTLY,
        "3",
        "Partly",
        "A part of it is supported, and a part is not.",
        "Passage: “The museum opens at ten.” – “It opens at ten, also on holidays.”",
    ),
    Choice(Label.NOT_A_CLAIM, "4", "Not a claim", "It says nothing that could be wrong.", "“I am glad to help.”"),
    Choice(
        Label.CANT_TELL,
        "5",
        "Can't tell",
        "You cannot judge it, even with time: a subject or a language that you do not know.",
        "“The reaction is exothermic.”",
    ),
)
DETAILS = (
    Choice(Detail.BASELESS, "b", "Baseless", "Nothing in the passages backs it."),
    Choice(Detail.CONFLICT, "c", "Conflict", "Something in the passages contradicts it."),
)


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage, with what the sentence shares with it marked."""

    position: int
    id: str | None
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Screen:
    """A task with one of its sentences. ``before`` and ``behind`` are the answer around the sentence."""

    task: ReviewTask
    sentence: TaskSentence
    before: str
    behind: str
    passages: Sequence[ShownPassage]

    @property
    def asked(self) -> list[int]:
        """The indexes of all sentences of the task that people are asked about."""
        return [sentence.index for sentence in self.task.sentences if sentence.asked]


def screen_of(task: ReviewTask, sentence_index: int) -> Screen | None:
    """The screen of a sentence that people are asked about; None if they are not."""
    found = next((one for one in task.sentences if one.index == sentence_index and one.asked), None)
    if found is None:
        return None
    language = language_of(task.answer) or language_of(task.question)
    return Screen(
        task=task,
        sentence=found,
        before=task.answer[: found.start],
        behind=task.answer[found.end :],
        passages=_passages(task, found.text, language),
    )


def _passages(task: ReviewTask, sentence: str, language: Language | None) -> list[ShownPassage]:
    shared = telling_stems(sentence, language)
    return [
        ShownPassage(passage.position, passage.id, marked(passage.text, shared, language)) for passage in task.passages
    ]
