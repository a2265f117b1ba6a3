"""Has the app changed? The class prior of newer against older labels, and the scores against an earlier window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.estimate import total
from worker.rules.calibration.guards import too_little
from worker.rules.calibration.interval import share
from worker.rules.calibration.labels import Booleans, Floats, Sample

PSI_BINS = 10


@dataclass(frozen=True, slots=True)
class PriorDrift:
    """The prior of the newer half of the labels less that of the older half, with bounds, by when they were asked."""

    difference: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether the bounds leave out zero."""
        return self.low > 0 or self.high < 0


def prior_drift(sample: Sample) -> PriorDrift:
    """The difference between the halves; its bounds from those of the halves (Newcombe's method, or MOVER)."""
    newer = newer_half(sample)
    p, p_low, p_high = _prior(sample.where(newer))
    q, q_low, q_high = _prior(sample.where(~newer))
    return PriorDrift(p - q, p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low))


def newer_half(sample: Sample) -> Booleans:
    """Those asked about after the median time; of those at one time, the later in the sample's order."""
    rank = np.argsort(np.argsort(sample.times, kind="stable"), kind="stable")
    return rank >= len(sample) // 2


def freshest(sample: Sample) -> Sample:
    """The labels that still speak for the app: while the newer half differs from the older, the newer half.

    An adaptive window: as long as nothing changes every label counts in full, and after a change the old ones go as
    soon as there is evidence, unless too little would remain. ``sample`` has two labels or more.
    """
    while prior_drift(sample).is_significant:
        newer = sample.where(newer_half(sample))
        if too_little(newer):
            break
        sample = newer
    return sample


def population_stability(scores: Floats, reference: Floats) -> float:
    """The population stability index over tenths of the reference: 0 if alike; above 0.25 they differ much."""
    edges = np.unique(np.quantile(reference, np.linspace(0, 1, PSI_BINS + 1)[1:-1]))
    now, then = (_shares(values, edges) for values in (scores, reference))
    return float(((now - then) * np.log(now / then)).sum())


def _shares(values: Floats, edges: Floats) -> Floats:
    """The share of the values in each bin, with half a value more in each, so that none is empty."""
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1) + 0.5
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _prior(sample: Sample) -> tuple[float, float, float]:
    everywhere = np.ones((len(sample), 1), dtype=np.bool_)
    equally = Curve((0.0,), (0.5,)).over(sample.scores)
    unsupported = total(sample, everywhere, sample.unsupported, equally)
    supported = total(sample, everywhere, ~sample.unsupported, equally)
    return share(unsupported, supported).at(0)
