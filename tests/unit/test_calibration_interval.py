"""Weighted totals and the intervals of their shares: against scipy where weights are equal, else by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, gamma

from tests.unit.test_calibration_data import FLAT, labels, made_up
from worker.rules.calibration.estimate import Estimates, below_and_above, estimate, total
from worker.rules.calibration.interval import Total, share
from worker.rules.calibration.labels import Floats, sample_of


def of(*labels_: tuple[float, bool, float, int]) -> tuple[Estimates, Floats]:
    """Estimates at 0.5 nats from score, unsupported, probability and cluster."""
    sample = sample_of(labels(*labels_))
    return estimate(sample, np.array([0.5]), np.array([0.1, 0.2, 0.8, 0.9]), FLAT), sample.weights


def test_with_equal_weights_the_interval_is_that_of_clopper_and_pearson() -> None:
    for hits, misses in ((0, 12), (3, 9), (11, 1), (12, 0)):
        rows = [(0.1 if index < hits else 0.9, True, 0.25, index) for index in range(hits + misses)]
        sample = sample_of(labels(*rows, (0.9, False, 0.25, 98), (0.1, False, 0.25, 99)))
        estimates = estimate(sample, np.array([0.5]), np.array([0.9]), FLAT)
        exact = binomtest(hits, hits + misses).proportion_ci(method="exact")
        part, rest = (Total(np.array([float(n)]), np.array([float(n)]), np.ones(1)) for n in (hits, misses))
        stated = share(part, rest)
        assert stated.at(0) == pytest.approx((hits / (hits + misses), exact.low, exact.high))
        assert estimates.recall.at(0) == pytest.approx(stated.at(0))


def test_with_equal_weights_recall_and_precision_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_score, recall_score  # seconds to import

    sample = sample_of([replace(one, probability=1.0) for one in made_up(400, seed=1)])
    thresholds = np.array([0.2, 0.5, 0.9])
    estimates = estimate(sample, thresholds, sample.scores, FLAT)
    for index, threshold in enumerate(thresholds):
        flagged = sample.scores < threshold
        assert estimates.recall.estimate[index] == pytest.approx(recall_score(sample.unsupported, flagged))
        assert estimates.precision.estimate[index] == pytest.approx(precision_score(sample.unsupported, flagged))
        assert estimates.flagged_share[index] == pytest.approx(flagged.mean())


def test_a_weighted_case_worked_by_hand() -> None:
    # Weights 1, 1, 2, 4, 4 have the mean 2.4. The two hits are of one answer: their variance is that of their sum.
    rows = ((0.1, True, 1.0, 1), (0.2, True, 1.0, 1), (0.3, False, 0.5, 2), (0.8, True, 0.25, 3), (0.9, False, 0.25, 4))
    estimates, weights = of(*rows)
    assert weights == pytest.approx(np.array([1, 1, 2, 4, 4]) / 2.4)
    assert estimates.recall.estimate[0] == pytest.approx(2 / 6)
    assert estimates.precision.estimate[0] == pytest.approx(2 / 4)
    assert estimates.prior.estimate[0] == pytest.approx(6 / 12)
    assert estimates.missed.estimate[0] == pytest.approx(4 / 8)
    assert estimates.misses().estimate[0] == pytest.approx(0.5 * 4 / 8)
    assert estimates.cost(10).estimate[0] == pytest.approx(0.5 + 10 * 0.5 * 4 / 8)
    # Hits: mean 2, variance (1 + 1)^2, shape 1. Misses and one more of weight 4: mean 8, variance 32, shape 2.
    # P(Gamma(1, 2) / (Gamma(1, 2) + Gamma(2, 4)) < r) = 1 - (1 + x)^-2 with x = odds * 4 / 2.
    odds = (0.975**-0.5 - 1) / 2
    assert estimates.recall.low[0] == pytest.approx(odds / (1 + odds))


def test_one_total_of_two_with_a_certain_rest_has_the_bounds_of_fay_and_feuer() -> None:
    part = Total(np.array([3.0]), np.array([4.5]), np.array([2.0]))
    vast = Total(np.array([1e9]), np.array([1.0]), np.array([0.0]))
    _, low, high = share(part, vast).at(0)
    assert low * 1e9 == pytest.approx(gamma.ppf(0.025, 2, scale=1.5), rel=1e-4)
    assert high * 1e9 == pytest.approx(gamma.ppf(0.975, 25 / 8.5, scale=8.5 / 5), rel=1e-4)


def test_labels_of_one_answer_tell_less_than_as_many_of_several() -> None:
    apart = [(0.1 if index % 4 else 0.9, True, 0.5, index) for index in range(40)]
    together = [(score, bad, probability, index // 4) for score, bad, probability, index in apart]
    (alone, _), (clustered, _) = of(*apart, (0.7, False, 0.5, 99)), of(*together, (0.7, False, 0.5, 99))
    assert clustered.precision.estimate == alone.precision.estimate
    assert (clustered.recall.high - clustered.recall.low)[0] > (alone.recall.high - alone.recall.low)[0]


def test_of_few_unflagged_sentences_few_can_be_missed() -> None:
    rows = [(0.1, index % 2 == 0, 1.0, index) for index in range(100)]
    sample = sample_of(labels(*rows, (5.0, False, 0.001, 100)))
    traffic = np.array([0.1] * 999 + [5.0])
    estimates = estimate(sample, np.array([0.5]), traffic, FLAT)
    assert estimates.recall.low[0] == pytest.approx(1 - 0.001 / estimates.prior.low[0])


def test_one_more_event_weighs_what_events_there_weigh_on_average() -> None:
    sample = sample_of(labels((0.1, False, 0.5, 1), (0.2, False, 0.25, 2), (0.9, False, 0.1, 3)))
    likely = np.array([0.3, 0.1, 0.5])
    region = np.array([[True, False], [True, False], [False, False]])
    weights = sample.weights
    counted = total(sample, region, sample.unsupported, likely)
    assert counted.value.tolist() == [0, 0]
    assert counted.next_weight == pytest.approx([(0.3 * weights[0] + 0.1 * weights[1]) / 0.4, weights.max()])


def test_totals_of_many_thresholds_are_those_of_each() -> None:
    sample = sample_of(made_up(300, seed=4))
    likely = np.linspace(0.1, 0.9, len(sample))
    thresholds = np.array([-9.0, 0.1, float(sample.scores[7]), 0.8, 9.0])
    below = sample.scores[:, None] < thresholds
    found = below_and_above(sample, thresholds, sample.unsupported, likely)
    for some, region in zip(found, (below, ~below), strict=True):
        each = total(sample, region, sample.unsupported, likely)
        assert some.value == pytest.approx(each.value)
        assert some.variance == pytest.approx(each.variance)
        assert some.next_weight == pytest.approx(each.next_weight)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 2), st.booleans(), st.floats(1e-6, 1), st.integers(0, 8)), min_size=1, max_size=25)
)
def test_bounds_hold_the_estimate_and_lie_between_zero_and_one(rows: list[tuple[float, bool, float, int]]) -> None:
    sample = sample_of(labels(*rows))
    estimates = estimate(sample, np.linspace(-0.5, 2.5, 7), np.linspace(0, 2, 11), FLAT)
    for interval in (estimates.recall, estimates.precision, estimates.missed, estimates.prior):
        there = np.isfinite(interval.estimate)
        assert np.isfinite(interval.low).all()
        assert np.isfinite(interval.high).all()
        assert ((interval.low >= 0) & (interval.high <= 1)).all()
        assert (interval.low <= interval.estimate + 1e-9)[there].all()
        assert (interval.estimate <= interval.high + 1e-9)[there].all()


def test_in_small_weighted_samples_of_whole_answers_the_interval_of_recall_holds_the_truth() -> None:
    rng = np.random.default_rng(5)
    rates, flagged_rates = np.array([0.05, 0.5]), np.array([0.3, 0.6])
    # Of one answer in five half the sentences are unsupported, of the others one in twenty; three in five of the
    # unsupported and three in ten of the supported lie below the threshold.
    truth, covered, runs = flagged_rates[1], 0, 300
    for _ in range(runs):
        kinds = rng.random((120, 1)) < 0.2
        unsupported = rng.random((120, 5)) < rates[kinds.astype(int)]
        scores = np.where(rng.random((120, 5)) < flagged_rates[unsupported.astype(int)], 0.1, 0.9)
        probabilities = np.where(scores < 0.5, 0.4, 0.1)
        asked = rng.random((120, 1)) < probabilities
        rows = [
            (float(scores[at]), bool(unsupported[at]), float(probabilities[at]), int(at[0]))
            for at in zip(*np.nonzero(asked), strict=True)
        ]
        sample = sample_of(labels(*rows))
        recall = estimate(sample, np.array([0.5]), scores.ravel(), FLAT).recall
        covered += bool(recall.low[0] <= truth <= recall.high[0])
    assert 0.92 <= covered / runs <= 0.995
