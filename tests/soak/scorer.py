"""A scorer that stands in for the model: every number is a pure function of a sentence's text.

The checker asks the same functions what a worker must have stored.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from gasp_core.grounding import (
    AnswerGrounding,
    AnswerSkip,
    Chunk,
    ChunkDrop,
    Exchange,
    Method,
    Sentence,
    SentenceGrounding,
    SentenceSkip,
    Truncation,
)
from gasp_core.identity import ScorerIdentity
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer

if TYPE_CHECKING:
    # Not at run time: it imports torch, which the checker can spare.
    from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits

IDENTITY = ScorerIdentity(model="soak", revision="none", dtype="none", template="none", method="soak-1")
MAX_CHUNKS = 5
# Gaps lie evenly in [0.1, 3.1) nats, so that one answer in twenty-five is below the first threshold, 0.15.
LOWEST_GAP_NATS, GAP_RANGE_NATS = 0.1, 3.0
LEAST_REACTION_NATS = 0.05


class SoakScorer:
    """Takes ``delay_s`` for a batch, as a model takes its time, and gives what ``grounding`` gives."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s

    @property
    def identity(self) -> ScorerIdentity:
        """An identity that no model has."""
        return IDENTITY

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score each answer, in the order of ``exchanges``."""
        time.sleep(self._delay_s)
        return [grounding(exchange, method) for exchange in exchanges]

    def reading(self, _: Sequence[Tap]) -> Self:
        return self

    def within(self, limits: Limits) -> Self:  # noqa: ARG002 - AnswerScorer's; here every context fits
        """The same."""
        return self


def grounding(exchange: Exchange, method: Method) -> AnswerGrounding:
    """The scores of an answer; an answer without passages is skipped."""
    chunks = context_chunks(exchange.passages, MAX_CHUNKS)
    removed = chunks if method is Method.LEAVE_ONE_OUT else ()
    sentences = tuple(
        _scored(index, sentence, exchange.answer, removed) if chunks else _skipped(index, sentence, exchange.answer)
        for index, sentence in enumerate(split_answer(exchange.answer))
    )
    words = sum(sentence.n_tokens for sentence in sentences)
    return AnswerGrounding(
        method=method,
        sentences=sentences,
        chunks=chunks,
        truncation=Truncation(0, 0, words, 0 if chunks else words),
        skip_reason=None if chunks else AnswerSkip.NO_PASSAGES,
        n_windows=1 if chunks else 0,
    )


def _scored(index: int, sentence: Sentence, answer: str, chunks: Sequence[Chunk]) -> SentenceGrounding:
    text = answer[sentence.start : sentence.end]
    drops = tuple(
        ChunkDrop(position, drop=fraction("drop", position, text) - 0.3, jsd=fraction("jsd", position, text) / 2)
        for position in range(len(chunks))
    )
    best = max(drops, key=lambda drop: drop.drop, default=None)
    supporting = best.chunk if best and best.drop >= LEAST_REACTION_NATS else None
    worst = min(drops, key=lambda drop: drop.drop, default=None)
    return SentenceGrounding(
        index=index,
        sentence=sentence,
        n_tokens=len(text.split()),
        gap=LOWEST_GAP_NATS + GAP_RANGE_NATS * fraction("gap", text),
        jsd_no_context=fraction("jsd", text) / 2,
        surprisal=fraction("surprisal", text),
        drops=drops,
        supporting_chunk=supporting,
        supporting_chunks=() if supporting is None else (supporting,),
        supporting_drop=best.drop if best else None,
        contradicting_chunk=worst.chunk if worst and worst.drop <= -LEAST_REACTION_NATS else None,
    )


def _skipped(index: int, sentence: Sentence, answer: str) -> SentenceGrounding:
    words = len(answer[sentence.start : sentence.end].split())
    return SentenceGrounding(index=index, sentence=sentence, n_tokens=words, skip_reason=SentenceSkip.NO_PASSAGES)


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but the parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
