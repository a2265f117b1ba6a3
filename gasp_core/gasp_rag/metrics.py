"""How well scores find what is unsupported, given labels.

A label is 1 for an unsupported sentence and 0 for a grounded one; a higher score says more likely unsupported, so a
sensitivity is handed in negated. Labels and scores are any two iterables of one length: lists, arrays, columns of a
table. Every function raises ValueError if the lengths differ, a label is not 0 or 1, or a score is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple


class _Tie(NamedTuple):
    """Rows of one score: how many, and how many of them are positive."""

    size: int
    positives: int


def evaluate(labels: Iterable[int], scores: Iterable[float], threshold: float | None = None) -> dict[str, float]:
    """Give ``n``, ``positives``, ``roc_auc`` and ``pr_auc``; with a threshold also what ``threshold_metrics`` gives."""
    rows = _rows(labels, scores)
    known, given = [label for label, _ in rows], [score for _, score in rows]
    found: dict[str, float] = {
        "n": len(rows),
        "positives": sum(known),
        "roc_auc": roc_auc(known, given),
        "pr_auc": pr_auc(known, given),
    }
    return found if threshold is None else found | threshold_metrics(known, given, threshold)


def roc_auc(labels: Iterable[int], scores: Iterable[float]) -> float:
    """Area under the ROC curve, in [0, 1]: how often a positive scores above a negative; equal scores count half.

    NaN if there is no positive or no negative.
    """
    rows = _rows(labels, scores)
    positives = sum(label for label, _ in rows)
    negatives = len(rows) - positives
    if not positives or not negatives:
        return math.nan
    wins = 0.0
    negatives_above = 0
    for tie in _ties(rows):
        tied = tie.size - tie.positives
        wins += tie.positives * (negatives - negatives_above - tied + tied / 2)
        negatives_above += tied
    return wins / (positives * negatives)


def pr_auc(labels: Iterable[int], scores: Iterable[float]) -> float:
    """Average precision, in (0, 1]: over the score values from the top, the recall gained times the precision there.

    Rows of one score come in together, so the result does not depend on their order. The package gasp-rag draws a
    straight line from each row to the next instead, and starts at precision 1: between two points that nobody can
    choose it interpolates a precision that nobody can have, and with ties its value changes with the order of rows.

    NaN if there is no positive; 1 if there is nothing else.
    """
    rows = _rows(labels, scores)
    positives = sum(label for label, _ in rows)
    if not positives:
        return math.nan
    precision_sum = 0.0
    seen = hits = 0
    for tie in _ties(rows):
        seen += tie.size
        hits += tie.positives
        precision_sum += tie.positives * hits / seen
    return precision_sum / positives


def threshold_metrics(labels: Iterable[int], scores: Iterable[float], threshold: float) -> dict[str, float]:
    """Give ``precision``, ``recall``, ``f1``, ``mcc`` and the counts ``tp``, ``fp``, ``fn``, ``tn`` at a threshold.

    A score at or above the threshold says unsupported. A ratio with nothing below its line is 0. ``mcc`` is the
    Matthews correlation, in [-1, 1]; the others are in [0, 1]. Raises ValueError also if the threshold is NaN.
    """
    if math.isnan(threshold):
        raise ValueError("the threshold is NaN")
    rows = _rows(labels, scores)
    tp = sum(label for label, score in rows if score >= threshold)
    fp = sum(1 - label for label, score in rows if score >= threshold)
    fn = sum(label for label, _ in rows) - tp
    tn = len(rows) - tp - fp - fn
    return {
        "precision": _ratio(tp, tp + fp),
        "recall": _ratio(tp, tp + fn),
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "mcc": _ratio(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
    }


def _rows(labels: Iterable[int], scores: Iterable[float]) -> list[tuple[int, float]]:
    """Check what was handed in; labels become int and scores float, whatever their library made of them."""
    known, given = list(labels), list(scores)
    if len(known) != len(given):
        raise ValueError(f"there are {len(known)} labels but {len(given)} scores")
    for row, label in enumerate(known):
        if label not in (0, 1):
            raise ValueError(f"label {row} is not 0 or 1")
    for row, score in enumerate(given):
        if not _is_finite(score):
            raise ValueError(f"score {row} is not a finite number; leave out what has no score")
    return [(int(label), float(score)) for label, score in zip(known, given, strict=True)]


def _is_finite(score: object) -> bool:
    try:
        return math.isfinite(score)  # type: ignore[arg-type]  # asked of anything, numbers of other libraries too
    except (TypeError, OverflowError):
        return False


def _ties(rows: list[tuple[int, float]]) -> Iterator[_Tie]:
    """Yield the score values from the highest to the lowest."""
    ordered = sorted(rows, key=lambda row: row[1], reverse=True)
    for _, tied in groupby(ordered, key=lambda row: row[1]):
        members = [label for label, _ in tied]
        yield _Tie(len(members), sum(members))


def _ratio(above: float, below: float) -> float:
    return above / below if below else 0.0
