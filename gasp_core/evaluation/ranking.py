"""How well one detector ranks what is unsupported, with intervals, and whether it does better than another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gasp_core.arrays import Flags, Floats
from gasp_core.evaluation.bootstrap import (
    Metric,
    PercentileInterval,
    Places,
    Resamples,
    interval,
    weighted_pr_auc,
    weighted_roc_auc,
)
from gasp_core.gasp_rag.metrics import pr_auc, roc_auc

# Precisions at which the recall is reported.
PRECISIONS = (0.5, 0.7, 0.9)

Json: TypeAlias = "float | int | str | list[Json] | dict[str, Json] | None"
Entry: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sentences or answers that have a label: scores (n,), NaN where there is none; higher is more grounded."""

    unsupported: Flags
    scores: Floats
    source_of: Places

    def where(self, chosen: Flags) -> Rows:
        """Some of them."""
        return Rows(self.unsupported[chosen], self.scores[chosen], self.source_of[chosen])

    def scored(self) -> Rows:
        """Those with a score."""
        return self.where(np.isfinite(self.scores))

    @property
    def suspicions(self) -> Floats:
        """The scores negated: higher is more suspicious."""
        return -self.scores

    @property
    def both(self) -> bool:
        """Whether there is something unsupported and something else."""
        return bool(self.unsupported.any()) and not bool(self.unsupported.all())


def areas(rows: Rows, resamples: Resamples) -> Entry:
    """``n``, ``n_unsupported``, ``auc`` with ``lo`` and ``hi``, ``pr_auc`` with ``pr_lo`` and ``pr_hi``."""
    rows = rows.scored()
    entry: Entry = {"n": len(rows.scores), "n_unsupported": int(rows.unsupported.sum())}
    entry["n_sources"] = len(np.unique(rows.source_of))
    return (
        entry
        | _area(
            "auc", "lo", "hi", roc_auc(rows.unsupported, rows.suspicions), _interval(rows, weighted_roc_auc, resamples)
        )
        | _area(
            "pr_auc",
            "pr_lo",
            "pr_hi",
            pr_auc(rows.unsupported, rows.suspicions),
            _interval(rows, weighted_pr_auc, resamples),
        )
    )


def difference(rows: Rows, others: Rows, resamples: Resamples) -> list[Json] | None:
    """By how much the AUC is above another detector's on what both have scored: [difference, low, high].

    The same resamples for both. None where there is no AUC.
    """
    both = np.isfinite(rows.scores) & np.isfinite(others.scores)
    rows, others = rows.where(both), others.where(both)
    if not rows.both:
        return None
    found = interval(_values(rows, weighted_roc_auc, resamples) - _values(others, weighted_roc_auc, resamples))
    if found is None:
        return None
    here, there = (roc_auc(one.unsupported, one.suspicions) for one in (rows, others))
    return [here - there, found.low, found.high]


def operating_points(rows: Rows) -> Entry:
    """Where to flag: ``best_f1``, and ``recall_at_precision`` by precision; None where none is reached.

    Chosen on the rows that they are measured on, so they flatter. What is below ``flag_below`` is flagged.
    """
    rows = rows.scored()
    if not rows.unsupported.any():
        return {"best_f1": None, "recall_at_precision": None}
    flag_below, precision, recall = _curve(rows)
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    best = int(f1.argmax())
    return {
        "best_f1": {"f1": float(f1[best]), **_point(flag_below, precision, recall, best)},
        "recall_at_precision": {
            str(least): _point(flag_below, precision, recall, int(np.flatnonzero(precision >= least)[-1]))
            if (precision >= least).any()
            else None
            for least in PRECISIONS
        },
    }


def _curve(rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Bound, precision and recall for every bound that flags something, from the lowest on."""
    order = np.argsort(rows.scores, kind="stable")
    scores = rows.scores[order]
    hits = np.cumsum(rows.unsupported[order])
    last = np.flatnonzero(np.concatenate([scores[1:] != scores[:-1], [True]]))  # of equal scores, all are flagged
    return np.nextafter(scores[last], math.inf), hits[last] / (last + 1), hits[last] / hits[-1]


def _point(flag_below: Floats, precision: Floats, recall: Floats, at: int) -> Entry:
    return {"flag_below": float(flag_below[at]), "precision": float(precision[at]), "recall": float(recall[at])}


def _interval(rows: Rows, metric: Metric, resamples: Resamples) -> PercentileInterval | None:
    return interval(_values(rows, metric, resamples)) if rows.both else None


def _values(rows: Rows, metric: Metric, resamples: Resamples) -> Floats:
    return resamples.values(metric, rows.unsupported, rows.suspicions, rows.source_of)


def _area(name: str, low: str, high: str, value: float, found: PercentileInterval | None) -> Entry:
    return {
        name: None if math.isnan(value) else value,
        low: found.low if found else None,
        high: found.high if found else None,
    }
