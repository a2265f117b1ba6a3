"""What a detector is: it makes one number out of what is known about a sentence. Higher is more grounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gasp_core.grounding import AnswerGrounding, Exchange, Sentence, SentenceGrounding, SentenceSkip
from gasp_core.identity import ScorerIdentity
from gasp_core.text.refusals import is_refusal
from gasp_core.text.skips import SKIPPED_KINDS
from gasp_core.tokens import AnswerTokens
from gasp_core.tpa.sources import AnswerSources

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

MIN_WORDS = 2


class Need(StrEnum):
    """What a detector has to know of an answer: only its text, or what the model says of it."""

    TEXT = "text"
    TWO_PASS = "two_pass"
    LEAVE_ONE_OUT = "leave_one_out"
    SOURCES = "sources"


class Training(StrEnum):
    """What a detector has to see before it scores."""

    NONE = "none"
    SAMPLE = "sample"  # readings of all sentences, without labels: what is usual among them
    LABELS = "labels"  # readings with labels; a sentence is scored by what was learned from other sources


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one answer.

    ``tokens`` is there for detectors that need two passes, ``leave_one_out`` for those that need that, and
    ``attributed``, where the probability of each token comes from, for those that need sources.
    """

    exchange: Exchange
    sentences: tuple[Sentence, ...]
    tokens: AnswerTokens | None = None
    leave_one_out: AnswerGrounding | None = None
    attributed: AnswerSources | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Finite numbers about one sentence, or none of them and the reason."""

    values: tuple[float, ...] = ()
    reason: str | None = None


Read: TypeAlias = Callable[[Evidence], Sequence[Reading]]
Score: TypeAlias = Callable[[Floats], Floats]  # readings (n, F) to scores (n,)
Fit: TypeAlias = Callable[[Floats, Flags], Score]  # from readings (n, F) and whether each is unsupported


def as_it_is(_readings: Floats, _unsupported: Flags) -> Score:
    """The first number of a reading is the score."""

    def score(readings: Floats) -> Floats:
        first: Floats = readings[:, 0]
        return first

    return score


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector by name.

    ``read`` gives a reading per sentence of the answer, in order, each of the same length. ``fit`` makes the scores
    out of readings, after it has seen what ``training`` says. ``scorers`` are those whose scores it may read, any if
    there are none.
    """

    name: str
    needs: Need
    read: Read
    fit: Fit = as_it_is
    training: Training = Training.NONE
    scorers: tuple[ScorerIdentity, ...] = ()

    def admits(self, scorer: ScorerIdentity) -> bool:
        """Whether it may read what that scorer says: coefficients were learned from the scores of some."""
        return not self.scorers or scorer in self.scorers


def by_text(read: Callable[[Exchange, Sequence[str]], Iterable[float]]) -> Read:
    """Read the texts of an answer's sentences; those that are no claim, as far as the text tells, have no reading."""

    def readings(evidence: Evidence) -> list[Reading]:
        exchange = evidence.exchange
        texts = [exchange.answer[sentence.start : sentence.end] for sentence in evidence.sentences]
        skips = _text_skips(evidence.sentences, exchange, texts)
        return [
            Reading(reason=skip) if skip else Reading((value,))
            for skip, value in zip(skips, read(exchange, texts), strict=True)
        ]

    return readings


def by_two_passes(read: Callable[[SentenceGrounding], Iterable[float | None]]) -> Read:
    """Read each sentence's features after two passes."""

    def readings(evidence: Evidence) -> list[Reading]:
        if evidence.tokens is None:
            raise ValueError("two passes are needed")
        return [_reading(sentence, read) for sentence in evidence.tokens.grounding.sentences]

    return readings


def by_leave_one_out(read: Callable[[SentenceGrounding], Iterable[float | None]]) -> Read:
    """Read each sentence's features after leave-one-out."""

    def readings(evidence: Evidence) -> list[Reading]:
        if evidence.leave_one_out is None:
            raise ValueError("leave-one-out is needed")
        return [_reading(sentence, read) for sentence in evidence.leave_one_out.sentences]

    return readings


def _reading(sentence: SentenceGrounding, read: Callable[[SentenceGrounding], Iterable[float | None]]) -> Reading:
    if sentence.skip_reason is not None:
        return Reading(reason=sentence.skip_reason)
    values = tuple(value for value in read(sentence) if value is not None)
    return Reading(values) if values else Reading(reason="no_feature")


def _text_skips(sentences: Sequence[Sentence], exchange: Exchange, texts: Sequence[str]) -> list[SentenceSkip | None]:
    """What the scorer would skip too, as far as the text alone tells."""
    if not any(passage.text.strip() for passage in exchange.passages):
        return [SentenceSkip.NO_PASSAGES] * len(texts)
    if all(is_refusal(text) for text in texts):
        return [SentenceSkip.REFUSAL] * len(texts)
    return [
        SKIPPED_KINDS.get(sentence.kind) or (SentenceSkip.TOO_SHORT if len(text.split()) < MIN_WORDS else None)
        for sentence, text in zip(sentences, texts, strict=True)
    ]
