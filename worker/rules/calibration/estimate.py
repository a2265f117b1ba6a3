"""What flagging below a threshold achieves: recall, precision, prior and flagged share, with intervals.

Everything follows from four weighted totals per threshold, those of the sentences below it and not below it that are
unsupported and supported. Variances are summed over interactions, because the sentences of one answer go together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.interval import Interval, Total
from worker.rules.calibration.labels import Booleans, Codes, Floats, Sample
from worker.rules.calibration.silence import share_within, unheard_of

# Of years of weekly looks at 200 thresholds, one in twenty finds a precision by this bound that no threshold has. By a
# bound of 95 % it is nearly every second one.
SURE = 0.998


@dataclass(frozen=True, slots=True)
class Estimates:
    """One entry per threshold (a score, rising). ``flagged_share`` is counted in the traffic, which needs no labels.

    ``missed`` is the share of the unflagged sentences that is unsupported. ``sure_precision`` is a lower bound of the
    precision that holds for all thresholds and all of a year's looks together, in 19 of 20 years.
    """

    thresholds: Floats
    flagged_share: Floats
    recall: Interval
    precision: Interval
    sure_precision: Floats
    missed: Interval
    prior: Interval

    def misses(self) -> Interval:
        """Unsupported unflagged sentences, as a share of all sentences."""
        unflagged = 1 - self.flagged_share
        return Interval(unflagged * self.missed.estimate, unflagged * self.missed.low, unflagged * self.missed.high)

    def cost(self, price: float) -> Interval:
        """Reviews a sentence, each flagged one costing one and each miss ``price``."""
        misses = self.misses()
        low, estimate, high = (
            self.flagged_share + np.where(self.flagged_share == 1, 0.0, price * bound)
            for bound in (misses.low, misses.estimate, misses.high)
        )
        return Interval(estimate, low, high)


def estimate(sample: Sample, thresholds: Floats, traffic: Floats, curve: Curve) -> Estimates:
    """Estimates at each threshold from the labels and the scores of the traffic, neither of which may be empty."""
    likely = curve.over(sample.scores)
    hits, missed = below_and_above(sample, thresholds, sample.unsupported, likely)
    false_alarms, passed = below_and_above(sample, thresholds, ~sample.unsupported, 1 - likely)
    everywhere = np.ones((len(sample), 1), dtype=np.bool_)
    unsupported = total(sample, everywhere, sample.unsupported, likely)
    supported = total(sample, everywhere, ~sample.unsupported, 1 - likely)
    flagged_share = np.searchsorted(np.sort(traffic), thresholds, side="left") / len(traffic)
    unheard = unheard_of(sample, thresholds, curve)
    prior = share_within(unsupported, supported, unheard.all_bad, unheard.all_good)
    return Estimates(
        thresholds=thresholds,
        flagged_share=flagged_share,
        recall=_at_worst(share_within(hits, missed, unheard.bad_below, unheard.bad_above), flagged_share, prior),
        precision=share_within(hits, false_alarms, unheard.bad_below, unheard.good_below),
        sure_precision=share_within(hits, false_alarms, unheard.bad_below, unheard.good_below, SURE).low,
        missed=share_within(missed, passed, unheard.bad_above, unheard.good_above),
        prior=prior,
    )


def _at_worst(recall: Interval, flagged_share: Floats, prior: Interval) -> Interval:
    """Recall that is no less than if every unflagged sentence were unsupported: of a few, few can be missed."""
    worst = 1 - (1 - flagged_share) / np.maximum(prior.low, np.finfo(np.float64).tiny)
    return replace(recall, low=np.minimum(np.maximum(recall.low, worst), np.nan_to_num(recall.estimate, nan=1.0)))


def below_and_above(sample: Sample, thresholds: Floats, events: Booleans, likely: Floats) -> tuple[Total, Total]:
    """Weighted totals of events below each threshold and of those not below it; as ``total``, at less cost."""
    below = np.searchsorted(np.sort(sample.scores), thresholds, side="left")
    return (
        _of_the_first(sample, sample.scores, below, events, likely),
        _of_the_first(sample, -sample.scores, len(sample) - below, events, likely),
    )


def _of_the_first(sample: Sample, keys: Floats, counts: Codes, events: Booleans, likely: Floats) -> Total:
    """Totals over as many labels as each count says, in the order of their keys.

    A label of weight w adds (s + w)² - s² to the variance, s being what its cluster had before.
    """
    order = np.lexsort((keys, sample.clusters))
    weighted = np.where(events, sample.weights, 0.0)[order]
    starts = np.flatnonzero(np.diff(sample.clusters[order], prepend=-1))
    sums = np.cumsum(weighted)
    before = np.repeat((sums - weighted)[starts], np.diff(starts, append=len(order)))
    by_key = np.argsort(keys[order], kind="stable")

    def counted(values: Floats) -> Floats:
        return np.asarray(np.concatenate([[0.0], np.cumsum(values[by_key])])[counts], dtype=np.float64)

    growth = weighted * (2 * (sums - before) - weighted)
    chance, weight = counted(likely[order]), counted((likely * sample.weights)[order])
    return Total(counted(weighted), counted(growth), _next_weight(sample, weight, chance))


def total(sample: Sample, region: Booleans, events: Booleans, likely: Floats) -> Total:
    """Weighted totals of events within each region (labels x thresholds).

    One more event would have the mean weight of the labels in its region, each taken as often as an event is
    ``likely`` there; where the region has no label, the largest weight of all.
    """
    weighted = np.where(events, sample.weights, 0.0)[:, None] * region
    starts = np.flatnonzero(np.diff(sample.clusters, prepend=-1))
    per_cluster = np.add.reduceat(weighted, starts, axis=0)
    next_weight = _next_weight(sample, (likely * sample.weights) @ region, likely @ region)
    return Total(weighted.sum(axis=0), (per_cluster**2).sum(axis=0), next_weight)


def _next_weight(sample: Sample, weight: Floats, chance: Floats) -> Floats:
    """The mean weight, or the largest of all where there is no chance of an event."""
    largest = np.full(len(chance), sample.weights.max())
    return np.asarray(np.divide(weight, chance, out=largest, where=chance > 0), dtype=np.float64)
