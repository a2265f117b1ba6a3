"""Intervals by resampling sources, because sentences of one source are alike.

A resample is how often each source is drawn. Metrics are computed for all resamples at once, as weighted ones: that
takes a few milliseconds per thousand rows where drawing rows takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gasp_core.arrays import Flags, Floats

CONFIDENCE = 0.95

# Weights held at once, in rows times resamples.
_BLOCK = 2_000_000

Places: TypeAlias = NDArray[np.intp]
Counts: TypeAlias = NDArray[np.int64]

# Of weights (B, n), labels (n,) and suspicions (n,), a value per resample (B,); NaN where it is not defined.
Metric: TypeAlias = Callable[[Floats, Flags, Floats], Floats]


@dataclass(frozen=True, slots=True)
class PercentileInterval:
    """A 95 % percentile interval, and the mean over the resamples."""

    low: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """How often each source is in each resample, (B, S)."""

    counts: Counts

    def values(self, metric: Metric, unsupported: Flags, suspicions: Floats, source_of: Places) -> Floats:
        """The metric of the rows in each resample, (B,). ``source_of`` (n,) is the place of each row's source."""
        rows = max(1, len(source_of))
        blocks = [
            metric(self.counts[at][:, source_of].astype(np.float64), unsupported, suspicions)
            for at in _slices(len(self.counts), max(1, _BLOCK // rows))
        ]
        return np.concatenate(blocks)


def resample(n_sources: int, n_resamples: int, seed: int) -> Resamples:
    """Draw as many sources as there are, with replacement, ``n_resamples`` times."""
    drawn = np.random.default_rng(seed).multinomial(n_sources, np.full(n_sources, 1 / n_sources), size=n_resamples)
    return Resamples(drawn)


def interval(values: Floats) -> PercentileInterval | None:
    """The interval of a metric from its resamples; None if it is defined in fewer than half of them."""
    known = values[np.isfinite(values)]
    if 2 * len(known) < max(1, len(values)):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return PercentileInterval(float(low), float(high), float(known.mean()))


def weighted_roc_auc(weights: Floats, unsupported: Flags, suspicions: Floats) -> Floats:
    """Area under the ROC curve (B,): how often an unsupported row scores above another; equal ones count half."""
    positives, negatives = _ties(weights, unsupported, suspicions)
    negatives_below = np.cumsum(negatives, axis=1) - negatives
    wins = (positives * (negatives_below + negatives / 2)).sum(axis=1)
    return _ratio(wins, positives.sum(axis=1) * negatives.sum(axis=1))


def weighted_pr_auc(weights: Floats, unsupported: Flags, suspicions: Floats) -> Floats:
    """Average precision (B,), as `pr_auc` of gasp-rag's interface."""
    positives, negatives = _ties(weights, unsupported, suspicions)
    hits = np.cumsum(positives[:, ::-1], axis=1)
    seen = np.cumsum((positives + negatives)[:, ::-1], axis=1)
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
    return _ratio((positives[:, ::-1] * precision).sum(axis=1), positives.sum(axis=1))


def weighted_mean(weights: Floats, _unsupported: Flags, values: Floats) -> Floats:
    """The mean of the values (B,)."""
    return _ratio(weights @ values, weights.sum(axis=1))


def _ties(weights: Floats, unsupported: Flags, suspicions: Floats) -> tuple[Floats, Floats]:
    """Weights of unsupported and of other rows per distinct suspicion, ascending: each (B, T)."""
    order = np.argsort(suspicions, kind="stable")
    ordered = suspicions[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ranked = weights[:, order]
    positives: Floats = np.add.reduceat(ranked * unsupported[order], starts, axis=1)
    return positives, np.add.reduceat(ranked, starts, axis=1) - positives


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _slices(length: int, size: int) -> Iterator[slice]:
    for at in range(0, length, size):
        yield slice(at, at + size)
