"""P(unsupported | score): a falling curve of few knots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from worker.rules.calibration.labels import Floats

MAX_KNOTS = 33
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """Linear between its knots and level beyond them. Scores rise, probabilities in [0, 1] never do.

    Raises ValueError if they do not, or if there is no knot.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        scores, probabilities = np.array(self.scores), np.array(self.probabilities)
        if not len(scores) or len(scores) != len(probabilities) or not np.isfinite([scores, probabilities]).all():
            raise ValueError("a curve has at least one knot, each with a finite score and probability")
        if (np.diff(scores) <= 0).any() or (np.diff(probabilities) > 0).any():
            raise ValueError("the scores of a curve rise, and its probabilities do not")
        if probabilities[0] > 1 or probabilities[-1] < 0:
            raise ValueError("the probabilities of a curve lie in [0, 1]")

    def probability(self, score: float) -> float:
        """How likely a sentence of that score is unsupported."""
        return float(np.interp(score, self.scores, self.probabilities))

    def over(self, scores: Floats) -> Floats:
        """The probability of each score."""
        return np.interp(scores, self.scores, self.probabilities)

    def to_json(self) -> dict[str, list[float]]:
        """As an object of two lists, ``scores`` and ``probabilities``."""
        return {"scores": list(self.scores), "probabilities": list(self.probabilities)}

    @classmethod
    def from_json(cls, value: Mapping[str, Sequence[float]]) -> Self:
        """What ``to_json`` gave. Raises ValueError or KeyError if it is no curve."""
        return cls(tuple(map(float, value["scores"])), tuple(map(float, value["probabilities"])))


def curve_of(scores: Floats, probabilities: Floats) -> Curve:
    """A curve through the points, which have rising scores and falling probabilities; thinned to few knots."""
    places = np.unique(np.linspace(0, len(scores) - 1, min(MAX_KNOTS, len(scores))).round().astype(int))
    knots, first = np.unique(scores[places].round(DIGITS), return_index=True)
    return Curve(tuple(knots.tolist()), tuple(probabilities[places][first].round(DIGITS).tolist()))
