"""What is known of sentences at scores where nobody answers: only that the unsupported get rarer as scores rise.

So of what lies above the scores that people answer at most as large a share is unsupported as there, and perhaps none;
of what lies below them at least as large a share, and perhaps all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.interval import CONFIDENCE, Interval, Total, share
from worker.rules.calibration.labels import Booleans, Codes, Floats, Sample

# How many labels beside a silent score say how much is unsupported there, and how few say nothing.
NEIGHBOURS = 60
FEWEST_NEIGHBOURS = 15


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """What silent sentences may add to a total, one entry per threshold."""

    low: Floats
    middle: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Unheard:
    """What silent sentences may add to the unsupported (bad) and supported (good), below and not below a threshold."""

    bad_below: Range
    bad_above: Range
    good_below: Range
    good_above: Range
    all_bad: Range
    all_good: Range


def unheard_of(sample: Sample, thresholds: Floats, curve: Curve) -> Unheard:
    """The ranges at each threshold, all zero if nothing is silent."""
    silent = sample.silent
    below = silent.scores[:, None] < thresholds
    everywhere = np.ones((len(silent), 1), dtype=np.bool_)
    rates = _rates(sample, curve)

    def added(region: Booleans, low: Floats, middle: Floats, high: Floats) -> Range:
        return Range(*((silent.weights * rate) @ region for rate in (low, middle, high)))

    good = tuple(1 - rate for rate in reversed(rates))
    return Unheard(
        added(below, *rates),
        added(~below, *rates),
        added(below, *good),
        added(~below, *good),
        added(everywhere, *rates),
        added(everywhere, *good),
    )


def share_within(part: Total, rest: Total, of_part: Range, of_rest: Range, confidence: float = CONFIDENCE) -> Interval:
    """The share of ``part`` in both, whatever the silent sentences are."""
    low = share(part.with_unheard(of_part.low), rest.with_unheard(of_rest.high), confidence).low
    middle = share(part.with_unheard(of_part.middle), rest.with_unheard(of_rest.middle)).estimate
    high = share(part.with_unheard(of_part.high), rest.with_unheard(of_rest.low), confidence).high
    return Interval(middle, low, high)


def _rates(sample: Sample, curve: Curve) -> tuple[Floats, Floats, Floats]:
    """The share of unsupported sentences at each silent score: at least, likely, and at most."""
    scores = sample.silent.scores
    order = np.argsort(sample.scores, kind="stable")
    place = np.searchsorted(sample.scores[order], scores, side="left")
    known, back = np.unique(place, return_inverse=True)
    low, high = np.zeros(len(known)), np.ones(len(known))
    for index, at in enumerate(known.tolist()):
        beneath, over = order[max(0, at - NEIGHBOURS) : at], order[at : at + NEIGHBOURS]
        if len(beneath) >= FEWEST_NEIGHBOURS:
            high[index] = _share_of(sample, beneath).high[0]
        if len(over) >= FEWEST_NEIGHBOURS:
            low[index] = _share_of(sample, over).low[0]
    middle = np.clip(curve.over(scores), low[back], np.maximum(low, high)[back])
    return np.minimum(low, high)[back], middle, np.maximum(low, high)[back]


def _share_of(sample: Sample, places: Codes) -> Interval:
    """How much of some labels is unsupported, the labels of one answer taken together."""
    weights, unsupported = sample.weights[places], sample.unsupported[places]
    largest = np.array([weights.max()])

    def summed(events: Booleans) -> Total:
        per_cluster = np.bincount(sample.clusters[places], np.where(events, weights, 0.0))
        return Total(np.array([per_cluster.sum()]), np.array([(per_cluster**2).sum()]), largest)

    return share(summed(unsupported), summed(~unsupported))
