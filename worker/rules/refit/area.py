"""The weighted area under the ROC curve, and the standard error of a difference of two on the same sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.labels import Floats
from worker.rules.refit.lesson import Lesson


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better one ranking is than another, with the standard error of that."""

    difference: float
    standard_error: float

    def is_better(self, standard_errors: float) -> bool:
        """Whether it is better by more than so many standard errors."""
        return self.difference > max(0.0, standard_errors * self.standard_error)

    def is_worse(self, standard_errors: float) -> bool:
        """Whether it is worse by more than so many standard errors."""
        return -self.difference > max(0.0, standard_errors * self.standard_error)


def area(lesson: Lesson, scores: Floats) -> float:
    """How likely a supported sentence of the traffic scores above an unsupported one; ties count half.

    Both labels must be there.
    """
    ranks = _ranks(lesson, scores)
    bad = lesson.unsupported
    return float(np.average(ranks[bad], weights=lesson.weights[bad]))


def compare(lesson: Lesson, one: Floats, other: Floats) -> Comparison:
    """The area of ``one`` less that of ``other``.

    The standard error is that of DeLong, DeLong and Clarke-Pearson (1988) with weights, and summed over interactions,
    because the sentences of one answer go together (Obuchowski 1997). Both labels must be there.
    """
    influence = _influence(lesson, one) - _influence(lesson, other)
    count = int(lesson.clusters.max()) + 1
    per_cluster = np.bincount(lesson.clusters, influence, minlength=count)
    used = len(np.unique(lesson.clusters))
    spread = float((per_cluster**2).sum()) * used / max(1, used - 1)
    return Comparison(area(lesson, one) - area(lesson, other), math.sqrt(spread))


def _influence(lesson: Lesson, scores: Floats) -> Floats:
    """What each sentence adds to the area beyond the mean, (n,)."""
    bad, weights = lesson.unsupported, lesson.weights
    ranks = _ranks(lesson, scores)
    of_kind = np.where(bad, weights[bad].sum(), weights[~bad].sum())
    return np.asarray(weights / of_kind * (ranks - area(lesson, scores)), dtype=np.float64)


def _ranks(lesson: Lesson, scores: Floats) -> Floats:
    """The weighted share of the other label that each sentence is on the right side of, ties half, (n,)."""
    bad = lesson.unsupported
    ranks = np.empty(len(lesson))
    ranks[bad] = 1 - _below(scores[~bad], lesson.weights[~bad], scores[bad])
    ranks[~bad] = _below(scores[bad], lesson.weights[bad], scores[~bad])
    return ranks


def _below(values: Floats, weights: Floats, at: Floats) -> Floats:
    """The weighted share of the values below each place, those at it half."""
    order = np.argsort(values, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weights[order])])
    left, right = (np.searchsorted(values[order], at, side=side) for side in ("left", "right"))
    return np.asarray((summed[left] + summed[right]) / (2 * summed[-1]), dtype=np.float64)
