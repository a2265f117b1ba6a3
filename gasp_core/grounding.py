"""The values that go into and come out of scoring. All are frozen; units are nats per token unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage, as the retriever returned it."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question, its retrieved passages in order, and the fixed answer that is scored."""

    question: str
    passages: tuple[Passage, ...]
    answer: str


class UnitKind(StrEnum):
    """What a unit of the answer is in its layout."""

    PROSE = "prose"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    TABLE_RULE = "table_rule"
    HEADING = "heading"
    CODE = "code"
    THOUGHT = "thought"


class SentenceSkip(StrEnum):
    """Why a sentence carries no score."""

    HEADING = "heading"
    CODE = "code"
    TABLE_RULE = "table_rule"
    THOUGHT = "thought"
    NO_CLAIM = "no_claim"
    TOO_SHORT = "too_short"
    PAST_WINDOW = "past_window"
    NO_PASSAGES = "no_passages"
    REFUSAL = "refusal"
    QUESTION_TOO_LONG = "question_too_long"
    NOT_FINITE = "not_finite"


class AnswerSkip(StrEnum):
    """Why an answer as a whole carries no score."""

    EMPTY_ANSWER = "empty_answer"
    NO_PASSAGES = "no_passages"
    REFUSAL = "refusal"
    QUESTION_TOO_LONG = "question_too_long"
    NOTHING_TO_SCORE = "nothing_to_score"


class Method(StrEnum):
    """How an answer was scored."""

    TWO_PASS = "two_pass"
    LEAVE_ONE_OUT = "leave_one_out"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A unit of the answer: the half-open character span ``[start, end)``. The units of an answer tile it."""

    start: int
    end: int
    kind: UnitKind


@dataclass(frozen=True, slots=True)
class Chunk:
    """A removable unit of context: the half-open character span ``[start, end)`` of the passage at ``passage``.

    ``passage`` is an index into ``Exchange.passages``. Chunks with the same ``group`` say nearly the same, so they
    hide each other when one alone is removed; leave-one-out removes a group as a whole.
    """

    passage: int
    start: int
    end: int
    group: int


@dataclass(frozen=True, slots=True)
class ChunkDrop:
    """How a sentence reacts to the removal of one chunk: likelihood drop in nats (signed), and JSD in [0, ln 2]."""

    chunk: int
    drop: float
    jsd: float


@dataclass(frozen=True, slots=True)
class SentenceGrounding:
    """The score of one sentence. Each feature is finite, or None together with a ``skip_reason``.

    ``gap``, ``jsd_no_context`` and ``surprisal`` are means over the sentence's tokens, in nats; a higher gap means
    more grounded. ``drops`` has an entry per chunk of the sentence's window after leave-one-out and is empty after two
    passes. ``supporting_chunks`` are, in order, the chunks that support it: those of one group if it reacts to that,
    else the fewest without which it loses most of its gap. ``supporting_chunk`` is the one among them with the largest
    drop, ``supporting_drop`` what the sentence loses without all of them. If none is named, that is the largest drop
    of a chunk, and ``unlocated`` says whether the gap is far larger: then there is support, but in no few chunks.
    ``contradicting_chunk`` is the one whose removal makes the sentence most likelier, or None if none does: a
    candidate for a contradiction, no more. A context that does not fit the model is read in windows; ``window`` is
    the index of the one that supports the sentence best, from which all its numbers are. ``readings`` are the means of
    what taps read inside the model under the whole context (``gasp_core.passes.taps``); nothing where there are none.
    ``worst`` are the words that are grounded least, a half-open character span of the answer within the sentence
    (``gasp_core.worst_span``); every sentence with a score has one.
    """

    index: int
    sentence: Sentence
    n_tokens: int
    gap: float | None = None
    jsd_no_context: float | None = None
    surprisal: float | None = None
    skip_reason: SentenceSkip | None = None
    drops: tuple[ChunkDrop, ...] = ()
    supporting_chunk: int | None = None
    supporting_chunks: tuple[int, ...] = ()
    supporting_drop: float | None = None
    unlocated: bool = False
    contradicting_chunk: int | None = None
    window: int = 0
    readings: tuple[float, ...] = ()
    worst: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """What did not fit the model's window. Token counts; zeros mean that everything was read."""

    context_tokens: int
    context_tokens_cut: int
    answer_tokens: int
    answer_tokens_cut: int

    @property
    def context_truncated(self) -> bool:
        """Whether the model did not see the whole context."""
        return self.context_tokens_cut > 0

    @property
    def answer_truncated(self) -> bool:
        """Whether the end of the answer was not scored."""
        return self.answer_tokens_cut > 0


@dataclass(frozen=True, slots=True)
class AnswerGrounding:
    """The scores of one answer: a sentence per unit, in order, and what was read to get them.

    ``n_windows`` is in how many windows the context was read; 0 if it was not.
    """

    method: Method
    sentences: tuple[SentenceGrounding, ...]
    chunks: tuple[Chunk, ...]
    truncation: Truncation
    skip_reason: AnswerSkip | None = None
    n_windows: int = 0

    @property
    def lowest_gap(self) -> float | None:
        """The lowest gap of a sentence, in nats, or None if no sentence is scored."""
        gaps = [sentence.gap for sentence in self.sentences if sentence.gap is not None]
        return min(gaps, default=None)
