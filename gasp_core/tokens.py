"""What a scorer knows about each token of an answer, beside what it made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gasp_core.grounding import AnswerGrounding

if TYPE_CHECKING:
    from torch import Tensor

TokenValues: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTokens:
    """An answer's grounding with the scores of its tokens, from the whole context and from none.

    Of each of the A answer tokens that were read: ``spans`` are the half-open character spans in the answer,
    ``log_probabilities`` (A,) and ``without_context`` (A,) the log-probability with the context and without, in nats,
    and ``divergences`` (A,) the Jensen-Shannon divergence of the two distributions, in [0, ln 2]. ``members`` are the
    tokens of each sentence, as indices into these. A token has the values of the window that its sentence is scored
    by. Where the answer as a whole has no score, A is 0.
    """

    grounding: AnswerGrounding
    spans: tuple[tuple[int, int], ...]
    log_probabilities: TokenValues
    without_context: TokenValues
    divergences: TokenValues
    members: tuple[tuple[int, ...], ...]

    @property
    def gaps(self) -> TokenValues:
        """Log-probability lost without context, (A,), in nats; its mean over a sentence is the sentence's gap."""
        return self.log_probabilities - self.without_context


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Of one window's prompts: log-probabilities and divergences (variants, A), and readings (A, M) of the first."""

    log_probabilities: Tensor
    divergences: Tensor
    readings: Tensor


def answer_tokens(
    grounding: AnswerGrounding,
    spans: Sequence[tuple[int, int]],
    members: Sequence[Sequence[int]],
    windows: Sequence[WindowScores],
) -> AnswerTokens:
    """Take each sentence's token scores from the window that the grounding chose for it."""
    length = windows[0].log_probabilities.shape[1]
    read = tuple(tuple(token for token in tokens if token < length) for tokens in members)
    window_of = np.zeros(length, dtype=np.intp)
    for sentence, tokens in zip(grounding.sentences, read, strict=True):
        window_of[list(tokens)] = sentence.window
    with_context, without_context, divergences = (_picked(rows, window_of) for rows in _rows(windows))
    return AnswerTokens(grounding, tuple(spans[:length]), with_context, without_context, divergences, members=read)


def no_tokens(grounding: AnswerGrounding) -> AnswerTokens:
    """An answer that was not read."""
    nothing = np.zeros(0, dtype=np.float32)
    return AnswerTokens(grounding, (), nothing, nothing, nothing, members=((),) * len(grounding.sentences))


def _rows(windows: Sequence[WindowScores]) -> Iterator[list[TokenValues]]:
    """The three kinds of values, each as one row per window."""
    yield [window.log_probabilities[0].numpy() for window in windows]
    yield [window.log_probabilities[1].numpy() for window in windows]
    yield [window.divergences[1].numpy() for window in windows]


def _picked(rows: list[TokenValues], window_of: NDArray[np.intp]) -> TokenValues:
    picked: TokenValues = np.stack(rows)[window_of, np.arange(len(window_of))]
    return picked
