"""Metrics, by hand-worked cases and beside a slow definition."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.gasp_rag.metrics import evaluate, pr_auc, roc_auc, threshold_metrics

rows = st.lists(st.tuples(st.integers(0, 1), st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0])), min_size=1, max_size=40)


def unzipped(pairs: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [label for label, _ in pairs], [score for _, score in pairs]


def test_roc_auc_of_a_worked_case_counts_a_tie_as_half() -> None:
    # Pairs of a positive and a negative: 3>2, 3>1, 2=2, 2>1.
    assert roc_auc([1, 1, 0, 0], [3.0, 2.0, 2.0, 1.0]) == 3.5 / 4


@given(rows)
def test_roc_auc_is_how_often_a_positive_scores_above_a_negative(pairs: list[tuple[int, float]]) -> None:
    labels, scores = unzipped(pairs)
    above = [score for label, score in pairs if label]
    below = [score for label, score in pairs if not label]
    if not above or not below:
        assert math.isnan(roc_auc(labels, scores))
        return
    wins = sum((high > low) + (high == low) / 2 for high, low in product(above, below))
    assert roc_auc(labels, scores) == pytest.approx(wins / (len(above) * len(below)), abs=1e-12)


def test_pr_auc_of_a_worked_case_is_average_precision() -> None:
    # From the top: a hit (1/1), a miss, a hit (2/3), a miss, a hit (3/5).
    assert pr_auc([1, 0, 1, 0, 1], [5, 4, 3, 2, 1]) == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_pr_auc_takes_equal_scores_in_together() -> None:
    # One hit alone on top, then two hits and two misses at once.
    assert pr_auc([1, 1, 0, 0, 1], [9, 1, 1, 1, 1]) == pytest.approx((1 * 1 + 2 * 3 / 5) / 3)


def test_pr_auc_of_scores_that_say_nothing_is_the_share_of_positives() -> None:
    assert pr_auc([1, 0, 0, 0], [7, 7, 7, 7]) == 0.25


@given(rows, st.randoms(use_true_random=False))
def test_no_metric_depends_on_the_order_of_rows(pairs: list[tuple[int, float]], shuffler: random.Random) -> None:
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    assert evaluate(*unzipped(shuffled), threshold=0.0) == pytest.approx(
        evaluate(*unzipped(pairs), threshold=0.0), nan_ok=True
    )


def test_a_single_class_has_no_roc_auc_and_without_positives_no_pr_auc() -> None:
    assert math.isnan(roc_auc([1, 1], [1, 2]))
    assert math.isnan(roc_auc([0, 0], [1, 2]))
    assert math.isnan(pr_auc([0, 0], [1, 2]))
    assert math.isnan(pr_auc([], []))
    assert pr_auc([1, 1], [1, 2]) == 1.0


def test_a_score_at_the_threshold_is_positive() -> None:
    found = threshold_metrics([1, 1, 1, 0, 0, 0], [0.9, 0.5, 0.1, 0.5, 0.2, 0.1], threshold=0.5)
    assert {name: found[name] for name in ("tp", "fp", "fn", "tn")} == {"tp": 2, "fp": 1, "fn": 1, "tn": 2}
    assert (found["precision"], found["recall"], found["f1"]) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert found["mcc"] == pytest.approx((2 * 2 - 1 * 1) / math.sqrt(3 * 3 * 3 * 3))


def test_ratios_with_nothing_below_the_line_are_zero() -> None:
    found = threshold_metrics([0, 0], [0.0, 0.0], threshold=1.0)
    assert [found[name] for name in ("precision", "recall", "f1", "mcc")] == [0.0] * 4


def test_the_matthews_correlation_is_signed() -> None:
    assert threshold_metrics([1, 0], [1.0, 0.0], 0.5)["mcc"] == 1.0
    assert threshold_metrics([0, 1], [1.0, 0.0], 0.5)["mcc"] == -1.0


def test_evaluate_has_point_metrics_only_with_a_threshold() -> None:
    labels, scores = [1, 0, 1], [0.3, 0.1, 0.2]
    found = evaluate(labels, scores)
    assert found == {"n": 3, "positives": 2, "roc_auc": 1.0, "pr_auc": 1.0}
    assert evaluate(labels, scores, threshold=0.0) == found | threshold_metrics(labels, scores, 0.0)


def test_labels_may_be_truth_values_and_any_iterable_will_do() -> None:
    assert evaluate((label > 0 for label in (1, -1)), iter([2, 1.0]))["positives"] == 1


@pytest.mark.parametrize(
    "metric", [roc_auc, pr_auc, evaluate, lambda labels, scores: threshold_metrics(labels, scores, 0)]
)
@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([1, 0], [0.5], "2 labels but 1 scores"),
        ([1, 2], [0.5, 0.5], "label 1 is not 0 or 1"),
        ([0.5, 1], [0.5, 0.5], "label 0 is not 0 or 1"),
        ([math.nan, 1], [0.5, 0.5], "label 0 is not 0 or 1"),
        ([None, 1], [0.5, 0.5], "label 0 is not 0 or 1"),
        (["1", 1], [0.5, 0.5], "label 0 is not 0 or 1"),
        ([1, 0], [math.nan, 0.5], "score 0 is not a finite number"),
        ([1, 0], [0.5, -math.inf], "score 1 is not a finite number"),
        ([1, 0], [0.5, None], "score 1 is not a finite number"),
        ([1, 0], [0.5, 10**400], "score 1 is not a finite number"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    metric: Callable[..., object], labels: list[int], scores: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metric(labels, scores)


def test_a_threshold_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold is NaN"):
        threshold_metrics([1], [1.0], math.nan)
