"""The seven sources of a token's probability, and what is known of an answer by them."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gasp_core.grounding import Sentence, SentenceSkip


class Source(IntEnum):
    """A source by its place in the arrays of sources."""

    QUERY = 0
    CONTEXT = 1
    PAST = 2
    SELF = 3
    FEED_FORWARD = 4
    FINAL_NORM = 5
    EMBEDDING = 6


# The four that attention brings; they come first.
POSITION_GROUPS = (Source.QUERY, Source.CONTEXT, Source.PAST, Source.SELF)


@dataclass(frozen=True, slots=True)
class SentenceSources:
    """Means of each source over a sentence's tokens: signed shares of probability, in the order of Source.

    ``query`` is what attention to the prompt outside the context brought, ``context`` to the passages, ``past`` to
    earlier answer tokens and ``self_token`` to the token after which the next one is predicted.
    """

    query: float
    context: float
    past: float
    self_token: float
    feed_forward: float
    final_norm: float
    embedding: float

    @property
    def probability(self) -> float:
        """The sum of the seven: the mean probability of the sentence's tokens, in [0, 1] to rounding."""
        return float(sum(astuple(self)))


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSources:
    """The sources of every token of an answer.

    ``values`` (T, 7) has a row per token, in the order of Source; rows of tokens that were not read are NaN.
    ``token_spans`` are the tokens' half-open character spans in ``answer``. ``members`` are the tokens of each
    sentence; ``skips`` says why a sentence has no score, and is None where it has one.
    """

    answer: str
    sentences: tuple[Sentence, ...]
    members: tuple[tuple[int, ...], ...]
    skips: tuple[SentenceSkip | None, ...]
    token_spans: tuple[tuple[int, int], ...]
    values: NDArray[np.float64]

    def of_sentences(self) -> tuple[SentenceSources | None, ...]:
        """The mean sources of each sentence, or None where it has no score: the explanation of its probability."""
        return tuple(
            None if skip else SentenceSources(*self.values[list(tokens)].mean(axis=0).tolist())
            for tokens, skip in zip(self.members, self.skips, strict=True)
        )
