from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from worker.report.quality import quality, reliability
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.labels import LabelledSentence, Unanswered, sample_of

LIKELY = Curve((0.0, 1.0), (0.8, 0.2))


def labelled(score: float, number: int, *, unsupported: bool, probability: float = 0.5) -> LabelledSentence:
    return LabelledSentence(score, unsupported, probability, number, 0.0)


def test_bins_of_equal_weights_have_the_share_and_the_interval_of_clopper_and_pearson() -> None:
    low = [labelled(0.0, number, unsupported=number < 7) for number in range(10)]
    high = [labelled(1.0, number, unsupported=number == 10) for number in range(10, 20)]
    unlikely, likely = reliability(sample_of([*low, *high]), LIKELY)
    assert (unlikely.foretold, unlikely.share, unlikely.labels) == pytest.approx((0.2, 0.1, 10))
    assert (likely.foretold, likely.share, likely.labels) == pytest.approx((0.8, 0.7, 10))
    assert (likely.low, likely.high) == pytest.approx((beta.ppf(0.025, 7, 4), beta.ppf(0.975, 8, 3)))


def test_a_label_counts_by_how_seldom_its_like_was_asked_about() -> None:
    # One in ten of the supported was asked about, every unsupported was: 2 in 2 + 10 x 3.
    asked = [labelled(0.2, number, unsupported=True, probability=1.0) for number in range(2)]
    asked += [labelled(0.9, number, unsupported=False, probability=0.1) for number in range(2, 5)]
    found = quality(asked, np.array([0.2, 0.5, 0.9, 1.5]), 0.4, None)
    assert found is not None
    prior, precision = found.in_force.prior.at(0), found.in_force.precision.at(0)
    assert prior[0] == pytest.approx(2 / 32)
    assert prior[1] < 2 / 32 < prior[2]
    assert (precision[0], found.in_force.flagged_share[0]) == (1.0, 0.25)
    assert found.reliability == ()


def test_nothing_is_said_without_labels_or_without_scores() -> None:
    assert quality([], np.array([0.5]), 0.4, LIKELY) is None
    assert quality([labelled(0.2, 1, unsupported=True)], np.array([]), 0.4, LIKELY) is None


def test_a_single_label_of_one_score_is_no_fault() -> None:
    found = quality([labelled(0.2, 1, unsupported=True)], np.array([0.2]), 0.2, LIKELY)
    assert found is not None
    assert found.in_force.recall.at(0)[0] == 0
    assert [one.labels for one in found.reliability] == [1]


def test_what_nobody_answered_changes_what_a_label_stands_for() -> None:
    asked = [labelled(score, index, unsupported=score < 0.5) for index, score in enumerate([0.2, 0.9] * 30)]
    open_ones = [Unanswered(0.9, 0.5, 0.0)] * 60
    everything, half = (quality(asked, np.array([0.2, 0.9]), 0.5, None, rest) for rest in ([], open_ones))
    assert everything is not None
    assert half is not None
    assert (everything.response.rate, half.response.rate) == pytest.approx((1.0, 0.5))
    assert half.in_force.prior.estimate[0] < everything.in_force.prior.estimate[0]
