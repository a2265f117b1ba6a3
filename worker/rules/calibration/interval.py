"""Intervals of a weighted share that hold in small samples.

A weighted total of rare events is bounded as by Fay and Feuer (1997): a gamma distribution with the total's mean and
variance below, and with one more event above. The share of one total in two is bounded by melding their gammas
(Fay, Proschan and Brittain 2015), which needs no simulation: their ratio is a beta's odds. With equal weights and
clusters of one this is the interval of Clopper and Pearson, to the digit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from worker.rules.calibration.labels import Floats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Total:
    """Weighted totals of events, one per threshold: value, variance, and the weight that one more event would have."""

    value: Floats
    variance: Floats
    next_weight: Floats

    def with_unheard(self, added: Floats) -> Total:
        """With what nobody answered: it was drawn as well, each sentence with about the weight of an event."""
        return Total(self.value + added, self.variance + added * self.next_weight, self.next_weight)


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimates with two-sided bounds, one per threshold. Where there is nothing, NaN within [0, 1]."""

    estimate: Floats
    low: Floats
    high: Floats

    def at(self, index: int) -> tuple[float, float, float]:
        """Estimate, low and high at one threshold."""
        return float(self.estimate[index]), float(self.low[index]), float(self.high[index])


def share(part: Total, rest: Total, confidence: float = CONFIDENCE) -> Interval:
    """The share of ``part`` in both."""
    tail = (1 - confidence) / 2
    whole = part.value + rest.value
    estimate = np.divide(part.value, whole, out=np.full_like(whole, np.nan), where=whole > 0)
    low = np.where(part.value > 0, _melded(part, _one_more(rest), tail), 0.0)
    high = np.where(rest.value > 0, _melded(_one_more(part), rest, 1 - tail), 1.0)
    return Interval(estimate, low, high)


def _one_more(total: Total) -> Total:
    """With one more event, which might as well have been seen."""
    return Total(total.value + total.next_weight, total.variance + total.next_weight**2, total.next_weight)


def _melded(part: Total, rest: Total, quantile: float) -> Floats:
    """The quantile of Gamma(part) / (Gamma(part) + Gamma(rest)); 1 stands in where a total is empty."""
    part_shape, part_scale = _gamma(part)
    rest_shape, rest_scale = _gamma(rest)
    beta = betaincinv(part_shape, rest_shape, quantile)
    of_part, of_rest = part_scale * beta, rest_scale * (1 - beta)
    return np.asarray(of_part / (of_part + of_rest), dtype=np.float64)


def _gamma(total: Total) -> tuple[Floats, Floats]:
    """Shape and scale of the gamma distribution with that mean and variance."""
    there = (total.value > 0) & (total.variance > 0)
    value = np.where(there, total.value, 1.0)
    variance = np.where(there, total.variance, 1.0)
    return value**2 / variance, variance / value
