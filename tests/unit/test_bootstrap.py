"""Areas, intervals, differences and operating points, beside scikit-learn, slow definitions and worked cases."""

from __future__ import annotations

import numpy as np
import pytest

from gasp_core.evaluation.bootstrap import (
    Resamples,
    interval,
    resample,
    weighted_mean,
    weighted_pr_auc,
    weighted_roc_auc,
)
from gasp_core.evaluation.ranking import Rows, areas, difference, operating_points


def drawn(n: int, seed: int, *, signal: float = 1.0) -> Rows:
    """Rows of n / 4 sources; scores with ties."""
    random = np.random.default_rng(seed)
    unsupported = random.random(n) < 0.3
    scores = (random.normal(size=n) - signal * unsupported).round(1).astype(np.float64)
    return Rows(unsupported, scores, np.arange(n) // 4)


def test_weighted_areas_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score  # seconds to import

    rows = drawn(200, 1)
    weights = np.random.default_rng(2).integers(0, 4, size=(5, 200)).astype(float)
    roc = weighted_roc_auc(weights, rows.unsupported, rows.suspicions)
    precision = weighted_pr_auc(weights, rows.unsupported, rows.suspicions)
    for row, weight in enumerate(weights):
        assert roc[row] == pytest.approx(roc_auc_score(rows.unsupported, rows.suspicions, sample_weight=weight))
        expected = average_precision_score(rows.unsupported, rows.suspicions, sample_weight=weight)
        assert precision[row] == pytest.approx(expected)


def test_areas_and_operating_points_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, f1_score, roc_auc_score  # seconds to import

    rows = drawn(400, 3)
    entry = areas(rows, resample(100, 50, 0))
    assert entry["auc"] == pytest.approx(roc_auc_score(rows.unsupported, rows.suspicions))
    assert entry["pr_auc"] == pytest.approx(average_precision_score(rows.unsupported, rows.suspicions))
    best = operating_points(rows)["best_f1"]
    assert isinstance(best, dict)
    bounds = np.unique(rows.scores)
    assert best["f1"] == pytest.approx(max(f1_score(rows.unsupported, rows.scores <= bound) for bound in bounds))
    flag_below = best["flag_below"]
    assert isinstance(flag_below, float)
    assert best["f1"] == pytest.approx(f1_score(rows.unsupported, rows.scores < flag_below))


def test_resampling_sources_is_drawing_their_rows_together() -> None:
    from sklearn.metrics import roc_auc_score  # seconds to import

    rows = drawn(40, 5)
    draw = np.array([3, 3, 0, 9, 9, 9, 1, 2, 5, 7])
    resamples = Resamples(np.bincount(draw, minlength=10)[None])
    repeated = np.concatenate([np.flatnonzero(rows.source_of == source) for source in draw])
    expected = roc_auc_score(rows.unsupported[repeated], rows.suspicions[repeated])
    found = resamples.values(weighted_roc_auc, rows.unsupported, rows.suspicions, rows.source_of)
    assert found == pytest.approx([expected])


def test_blocks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, resamples = drawn(80, 6), resample(20, 30, 1)
    whole = resamples.values(weighted_roc_auc, rows.unsupported, rows.suspicions, rows.source_of)
    monkeypatch.setattr("gasp_core.evaluation.bootstrap._BLOCK", 200)
    pieces = resamples.values(weighted_roc_auc, rows.unsupported, rows.suspicions, rows.source_of)
    np.testing.assert_array_equal(whole, pieces)


def test_an_interval_is_seeded_and_holds_the_truth_about_as_often_as_it_says() -> None:
    from sklearn.metrics import roc_auc_score  # seconds to import

    resamples = resample(75, 300, 4)
    assert areas(drawn(300, 7), resamples) == areas(drawn(300, 7), resample(75, 300, 4))
    truth = float(roc_auc_score(*unzipped(drawn(200_000, 8))))
    entries = [areas(drawn(300, seed), resamples) for seed in range(100)]
    held = sum(entry["lo"] <= truth <= entry["hi"] for entry in entries)  # type: ignore[operator]  # JSON has any type
    assert 88 <= held <= 100


def unzipped(rows: Rows) -> tuple[object, object]:
    return rows.unsupported, rows.suspicions


def test_rows_of_one_source_do_not_make_an_interval_narrower() -> None:
    rows = drawn(100, 9)
    thrice = Rows(np.tile(rows.unsupported, 3), np.tile(rows.scores, 3), np.tile(rows.source_of, 3))
    resamples = resample(25, 200, 0)
    assert areas(thrice, resamples)["lo"] == pytest.approx(areas(rows, resamples)["lo"])
    assert areas(thrice, resamples)["hi"] == pytest.approx(areas(rows, resamples)["hi"])


def test_a_difference_by_hand_is_paired_on_what_both_have_scored() -> None:
    # Two sources, each with an unsupported and a grounded sentence; a third that only one detector scores.
    unsupported = np.array([True, False, True, False, True])
    source_of = np.array([0, 0, 1, 1, 1])
    ours = Rows(unsupported, np.array([0.0, 1.0, 0.0, 1.0, 5.0]), source_of)
    theirs = Rows(unsupported, np.array([0.0, 1.0, 1.0, 0.0, np.nan]), source_of)
    # Ours ranks all four pairs rightly; theirs that of the first source and two halves across: (1 + 0 + .5 + .5) / 4.
    both = Resamples(np.array([[1, 1], [2, 0], [0, 2]]))
    found = difference(ours, theirs, both)
    assert found is not None
    assert found[0] == pytest.approx(0.5)
    # In the resamples: 0.5, 0 (only the first source), 1 (only the second).
    assert found[1:] == pytest.approx(list(np.quantile([0.5, 0.0, 1.0], [0.025, 0.975])))
    assert difference(ours, ours, both) == [0.0, 0.0, 0.0]


def test_what_has_one_label_only_has_no_area_and_no_point() -> None:
    rows = Rows(np.zeros(4, dtype=bool), np.arange(4.0), np.arange(4))
    entry = areas(rows, resample(4, 10, 0))
    assert (entry["n"], entry["auc"], entry["lo"], entry["pr_auc"]) == (4, None, None, None)
    assert operating_points(rows) == {"best_f1": None, "recall_at_precision": None}
    assert difference(rows, rows, resample(4, 10, 0)) is None


def test_recall_at_a_precision_is_the_largest_that_keeps_it() -> None:
    # From the lowest score on: hit, miss, hit, miss, miss; precisions 1, 1/2, 2/3, 1/2, 2/5.
    rows = Rows(np.array([True, False, True, False, False]), np.arange(5.0), np.arange(5))
    points = operating_points(rows)["recall_at_precision"]
    assert isinstance(points, dict)
    half, nine_tenths = points["0.5"], points["0.9"]
    assert isinstance(half, dict)
    assert isinstance(nine_tenths, dict)
    assert (half["recall"], half["precision"]) == (1.0, 0.5)
    assert (nine_tenths["recall"], nine_tenths["precision"]) == (0.5, 1.0)
    assert points["0.7"] == nine_tenths


def test_a_metric_that_most_resamples_do_not_define_has_no_interval() -> None:
    assert interval(np.array([0.5, np.nan, np.nan])) is None
    found = interval(np.array([0.25, 0.75, np.nan]))
    assert found is not None
    assert found.mean == 0.5
    assert weighted_mean(np.array([[1.0, 3.0]]), np.zeros(2, dtype=bool), np.array([0.0, 1.0])) == [0.75]
