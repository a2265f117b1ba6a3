"""How far flags and probabilities can be trusted, from the labels of the period. Pure numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.estimate import Estimates, estimate, total
from worker.rules.calibration.interval import share
from worker.rules.calibration.labels import Floats, LabelledSentence, Sample, Unanswered
from worker.rules.calibration.response import Response, weighted_by_response

BINS = 6
# A bin of fewer would say nothing.
BIN_LABELS = 10
THRESHOLDS = 80
# Nobody has said yet how likely a score is unsupported.
EVEN = Curve((0.0,), (0.5,))


@dataclass(frozen=True, slots=True)
class Bin:
    """Labelled sentences of like probability: what was foretold on average, and the share that is unsupported."""

    foretold: float
    share: float
    low: float
    high: float
    labels: int


@dataclass(frozen=True, slots=True)
class Quality:
    """Estimates at the threshold in force (one entry) and over the scores of the traffic, and the bins of reliability.

    There are no bins where the version in force has no curve.
    """

    sample: Sample
    response: Response
    in_force: Estimates
    over_thresholds: Estimates
    reliability: tuple[Bin, ...]


def quality(
    labels: Sequence[LabelledSentence],
    scores: Floats,
    flag_below: float,
    curve: Curve | None,
    unanswered: Sequence[Unanswered] = (),
) -> Quality | None:
    """What the labels say, beside what nobody answered; None if there are none, or no scores to set them against."""
    if not labels or not len(scores):
        return None
    sample, response = weighted_by_response(labels, unanswered)
    likely = EVEN if curve is None else curve
    first, last = np.quantile(scores, (0.002, 0.9))
    thresholds = np.linspace(first, last, THRESHOLDS)
    return Quality(
        sample=sample,
        response=response,
        in_force=estimate(sample, np.array([flag_below]), scores, likely),
        over_thresholds=estimate(sample, thresholds, scores, likely),
        reliability=() if curve is None else reliability(sample, curve),
    )


def reliability(sample: Sample, curve: Curve) -> tuple[Bin, ...]:
    """At most six bins of about as many labels each, by rising probability."""
    foretold = curve.over(sample.scores)
    wanted = max(1, min(BINS, len(sample) // BIN_LABELS))
    edges = np.unique(np.quantile(foretold, np.linspace(0, 1, wanted + 1)[1:-1]))
    number = np.searchsorted(edges, foretold, side="right")
    regions = number[:, None] == np.unique(number)[None, :]
    found = share(
        total(sample, regions, sample.unsupported, foretold), total(sample, regions, ~sample.unsupported, 1 - foretold)
    )
    means = ((sample.weights * foretold) @ regions) / (sample.weights @ regions)
    return tuple(
        Bin(float(mean), *found.at(index), int(labels))
        for index, (mean, labels) in enumerate(zip(means, regions.sum(axis=0), strict=True))
    )
