"""Which words of a sentence are grounded least.

A token tells three things of how it is grounded: the likelihood that it loses without the context, how far the two
distributions are apart there, and, if the scorer reads for a detector that is linear in what it reads, what it adds to
the score. Each is put on the scale of its own sentence, because only the words of one sentence are compared, and their
sum is averaged over windows. So there is a span whatever the scorer and the detector are. What each of them finds is
in docs/evaluation.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import sqrt
from typing import TYPE_CHECKING

from gasp_core.grounding import Sentence, SentenceGrounding
from gasp_core.text import scripts

if TYPE_CHECKING:
    from torch import Tensor

    from gasp_core.tokens import WindowScores

# Of fewer tokens one of them decides.
LEAST_TOKENS = 5

_UNSPACED = scripts.UNSPACED.replace(scripts.HANGUL, "")
# What words have no border within: letters, digits and the signs in and behind them; what hangs on a character.
_LETTER = rf"(?:[^\W{_UNSPACED}]|[{scripts.MARKS}'’.,:;!?%/@&+\u2010\u2011-])"
_HANGING = f"[{scripts.MARKS}\u200d]"
_IN_WORD = re.compile(rf"{_LETTER}{_LETTER}|.{_HANGING}|[\u17d2\u1039\u200d].")

Span = tuple[int, int]


def with_worst_spans(
    answer: str,
    sentences: Sequence[SentenceGrounding],
    spans: Sequence[Span],
    members: Sequence[Sequence[int]],
    windows: Sequence[WindowScores],
    slopes: Tensor | None,
) -> tuple[SentenceGrounding, ...]:
    """The sentences of an answer with their worst spans, each by the window that it is scored by.

    ``spans`` are the characters of each token and ``members`` the tokens of each sentence. ``slopes`` (M,) is what one
    unit of each reading adds to a score, None if no score is made of them.
    """
    told: dict[int, list[list[float]]] = {}
    for window in {found.window for found in sentences if found.gap is not None}:
        told[window] = _told(windows[window], slopes)
    return tuple(
        found if found.gap is None else replace(found, worst=_worst(answer, found, spans, tokens, told[found.window]))
        for found, tokens in zip(sentences, members, strict=True)
    )


def _told(scores: WindowScores, slopes: Tensor | None) -> list[list[float]]:
    """What each token of an answer tells, a list for each kind."""
    told = [scores.log_probabilities[0] - scores.log_probabilities[1], scores.divergences[1]]
    if slopes is not None:
        told.append(scores.readings @ slopes)
    return [one.tolist() for one in told]


def _worst(
    answer: str, found: SentenceGrounding, spans: Sequence[Span], tokens: Sequence[int], told: Sequence[list[float]]
) -> Span | None:
    kinds = [_standard([one[token] for token in tokens]) for one in told]
    return worst_span(
        answer, found.sentence, [spans[token] for token in tokens], list(map(sum, zip(*kinds, strict=True)))
    )


def worst_span(answer: str, sentence: Sentence, spans: Sequence[Span], values: Sequence[float]) -> Span | None:
    """The half-open span of characters of the answer whose tokens have the lowest mean value.

    It has whole words of the sentence and at least LEAST_TOKENS tokens, or all of a shorter sentence, and neither
    begins nor ends with a blank; the first of several. None if there is nothing to be seen. Takes time linear in the
    tokens.
    """
    starts = list(_word_starts(answer, spans))
    sums = list(accumulate(values, initial=0.0))
    start, end = min(_windows(starts, len(spans)), key=lambda at: (sums[at[1]] - sums[at[0]]) / (at[1] - at[0]))
    return _visible(answer, max(sentence.start, spans[start][0]), min(sentence.end, spans[end - 1][1]))


def _windows(starts: Sequence[int], count: int) -> Iterator[Span]:
    """From the start of each word, the fewest whole words with enough tokens."""
    edges = [*starts, count]
    behind = 0
    for start in starts:
        while edges[behind] - start < min(LEAST_TOKENS, count):
            behind += 1
            if behind == len(edges):
                return
        yield start, edges[behind]


def _word_starts(answer: str, spans: Sequence[Span]) -> Iterator[int]:
    """Which tokens begin a word. In scripts without blanks each character does, with the marks on it."""
    yield 0
    for token in range(1, len(spans)):
        start = spans[token][0]
        is_shared = start < spans[token - 1][1]  # several tokens of one character
        if not is_shared and not _IN_WORD.match(answer, max(0, start - 1)):
            yield token


def _visible(answer: str, start: int, end: int) -> Span | None:
    text = answer[start:end]
    start += len(text) - len(text.lstrip())
    end = start + len(text.strip())
    return (start, end) if start < end else None


def _standard(values: Sequence[float]) -> list[float]:
    """The values about their mean, in deviations; zeros if all are the same."""
    mean = sum(values) / len(values)
    centred = [value - mean for value in values]
    deviation = sqrt(sum([value * value for value in centred]) / len(values))
    return [value / deviation for value in centred] if deviation > 0 else [0.0] * len(values)
