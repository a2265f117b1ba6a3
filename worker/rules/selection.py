"""Which sentences of an answer people are asked about, each with a known probability. Pure.

One uniform number per answer decides about all its sentences: sentence s is asked about iff the number lies below the
probability of s. So the stored probability is exactly that of being asked, and what is asked of an answer comes in one
task. A probability depends on nothing but the scores of the answer and what was issued before, so that weighting a
label by one over its probability is unbiased whatever the budget does.

That way all sentences of a long answer may be asked about at once, and be more than what is left of the day's budget.
Where they could be, their probabilities are scaled down until what is expected of the answer is what is left, and the
number lays a ruler with marks at distance one along the running sum of the probabilities: a sentence is asked about iff
a mark falls on its part. Its chance of that is its probability again, and the number of marks is the sum, rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

# Far above the threshold a sentence is asked about this much as often as just above it: about the square root of how
# much rarer an unsupported one is there, which gives the narrowest bounds for a number of reviews.
LEAST_DENSITY = 0.4
# Before anything is known of an app's traffic.
FIRST_RATE_FLAGGED = 1.0
FIRST_RATE_SAMPLED = 0.05
# How quickly probabilities fall beyond half of the day's budget, and how far. Never to zero, because nobody speaks for
# what cannot be asked; ten times the usual traffic spends twice the budget.
EASING = 3.0
LEAST_REMAINING = 0.1
# The same for a budget that many apps have together.
SHARED_EASING = 10.0


class Reason(StrEnum):
    """Why people are asked."""

    FLAGGED = "flagged"
    SAMPLED = "sampled"
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Share:
    """What a budget that many apps have together leaves to one: a factor of its rate, and the most at once (None: any).

    At first all of it is left.
    """

    factor: float = 1.0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SamplingBudget:
    """What an app's sampling rate follows from. Budgets and issued are sentences of the UTC day; ``spread`` of scores.

    ``expected_flagged`` and ``expected_sampled`` are the sums of ``expected_weights`` over a usual day, None before
    there was one. The shares are those in a budget that the app has together with others.
    """

    flagged_budget: int
    flagged_issued: int
    expected_flagged: float | None
    sampled_budget: int
    sampled_issued: int
    expected_sampled: float | None
    spread: float = 0.5
    flagged_share: Share = Share()
    sampled_share: Share = Share()


@dataclass(frozen=True, slots=True)
class Selected:
    """A sentence that people are asked about, and how likely it was."""

    sentence_index: int
    probability: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Selection:
    """The task that an answer becomes; its probability is the largest of its sentences'."""

    probability: float
    reason: Reason
    sentences: tuple[Selected, ...]


@dataclass(frozen=True, slots=True)
class _Rate:
    """How a weight becomes a probability, on a usual day and with what is left of the budget."""

    rate: float
    remaining: float

    def eased(self, factor: float) -> _Rate:
        return replace(self, remaining=self.remaining * factor)

    def probability(self, weight: float) -> float:
        return min(1.0, self.rate * weight) * self.remaining


def selection_probabilities(
    scores: Sequence[float | None], flag_below: float, budget: SamplingBudget
) -> tuple[float | None, ...]:
    """How likely each sentence is to be asked about, in [0, 1]; None where it has no score, 0 where no budget is."""
    return tuple(None if one is None else one.probability for one in _chances(scores, flag_below, budget))


def select(
    scores: Sequence[float | None], flag_below: float, budget: SamplingBudget, uniform: float
) -> Selection | None:
    """The task for an answer whose sentences score ``scores``, if one is due; ``uniform`` is drawn anew from [0, 1)."""
    chances = _chances(scores, flag_below, budget)
    chosen = tuple(one for one in chances if one is not None and one.is_hit(uniform))
    if not chosen:
        return None
    reason = Reason.FLAGGED if any(one.reason is Reason.FLAGGED for one in chosen) else Reason.SAMPLED
    asked = tuple(Selected(one.index, one.probability, one.reason) for one in chosen)
    return Selection(max(one.probability for one in asked), reason, asked)


def expected_weights(scores: NDArray[np.float64], flag_below: float, spread: float) -> tuple[float, float]:
    """The sums of the weights of the flagged and of the unflagged; over several days divide by their number."""
    below = scores[scores < flag_below]
    above = scores[scores >= flag_below]
    flagged = (1 + (flag_below - below) / spread).sum()
    sampled = np.maximum(LEAST_DENSITY, np.exp(-(above - flag_below) / spread)).sum()
    return float(flagged), float(sampled)


@dataclass(frozen=True, slots=True)
class _Chance:
    """How likely a sentence is asked about. ``start`` is where its part of the ruler begins, None without a ruler."""

    index: int
    reason: Reason
    probability: float
    start: float | None = None

    def is_hit(self, uniform: float) -> bool:
        if self.start is None:
            return uniform < self.probability
        # Marks lie at the number and at every distance of one behind it.
        return math.ceil(self.start - uniform) < math.ceil(self.start + self.probability - uniform)


def _chances(scores: Sequence[float | None], flag_below: float, budget: SamplingBudget) -> list[_Chance | None]:
    flagged = _rate(budget.flagged_budget, budget.flagged_issued, budget.expected_flagged, FIRST_RATE_FLAGGED)
    sampled = _rate(budget.sampled_budget, budget.sampled_issued, budget.expected_sampled, FIRST_RATE_SAMPLED)
    flagged, sampled = flagged.eased(budget.flagged_share.factor), sampled.eased(budget.sampled_share.factor)
    free = [
        _Chance(
            index,
            Reason.FLAGGED if score < flag_below else Reason.SAMPLED,
            _probability(score, flag_below, budget.spread, flagged, sampled),
        )
        for index, score in enumerate(scores)
        if score is not None
    ]
    found: list[_Chance | None] = [None] * len(scores)
    for reason, left in (
        (Reason.FLAGGED, _left(budget.flagged_budget, budget.flagged_issued, budget.flagged_share)),
        (Reason.SAMPLED, _left(budget.sampled_budget, budget.sampled_issued, budget.sampled_share)),
    ):
        for chance in _within([one for one in free if one.reason is reason], left):
            found[chance.index] = chance
    return found


def _left(budget: int, issued: int, share: Share) -> int:
    """How many sentences of one answer may be asked about: what is left of the budget, and a little beyond it."""
    own = max(budget - issued, math.ceil(LEAST_REMAINING * budget))
    return own if share.most is None else min(own, share.most)


def share_of(budget: int, issued: int) -> Share:
    """What a budget leaves to each of those who have it together.

    Harder than the brake of an app's own budget, and without a floor: their number has no bound.
    """
    if budget <= 0:
        return Share(0.0, 0)
    return Share(min(1.0, math.exp(-SHARED_EASING * (issued / budget - 0.5))), max(1, budget - issued))


def _within(chances: list[_Chance], most: int) -> list[_Chance]:
    """At most ``most`` of them at once: along a ruler, if it could be more."""
    if len(chances) <= most:
        return chances
    total = math.fsum(one.probability for one in chances)
    # A trifle less, so that rounding adds no mark.
    scale = min(1.0, most * (1 - 1e-9) / total) if total else 1.0
    laid, start = [], 0.0
    for one in chances:
        laid.append(replace(one, probability=one.probability * scale, start=start))
        start += one.probability * scale
    return laid


def _rate(budget: int, issued: int, expected: float | None, first: float) -> _Rate:
    """The rate that would spend the budget on a usual day, eased once half of it is spent.

    A stop at the budget would leave the rest of the day to a few labels of enormous weight, and easing from the start
    would vary the weights more for the same number of reviews. A usual day spends four fifths of the budget.
    """
    if budget <= 0:
        return _Rate(0.0, 0.0)
    rate = first if expected is None else min(1.0, budget / max(expected, 1e-9))
    remaining = math.exp(-EASING * (issued / budget - 0.5))
    return _Rate(rate, min(1.0, max(LEAST_REMAINING, remaining)))


def _probability(score: float, flag_below: float, spread: float, flagged: _Rate, sampled: _Rate) -> float:
    """The lower a flagged sentence and the nearer to the threshold an unflagged one, the likelier."""
    distance = (score - flag_below) / spread
    if distance < 0:
        return flagged.probability(1 - distance)
    return sampled.probability(max(LEAST_DENSITY, math.exp(-distance)))
