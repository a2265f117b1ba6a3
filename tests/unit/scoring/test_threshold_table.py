"""The table of first thresholds, at another share of affected answers than the set has."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.threshold import described, weights_at

# Four answers of two sentences; two of them have an unsupported one.
ANSWER_OF = np.array([0, 0, 1, 1, 2, 2, 3, 3])
UNSUPPORTED = np.array([True, False, True, False, False, False, False, False])
SCORES = np.array([0.0, 1.0, 0.1, 1.1, 0.2, 1.2, 0.3, 1.3])


def line(base_rate: float | None, bound: float) -> list[str]:
    return list(described(SCORES, UNSUPPORTED, weights_at(base_rate, UNSUPPORTED, ANSWER_OF), bound))[-1].split()


@pytest.mark.parametrize("rate", [0.1, 0.187, 0.9])
def test_the_weights_give_answers_with_something_unsupported_the_wanted_share(rate: float) -> None:
    weights = weights_at(rate, UNSUPPORTED, ANSWER_OF)
    affected = np.isin(ANSWER_OF, [0, 1])
    assert weights[affected].sum() / weights.sum() == pytest.approx(rate)
    assert weights_at(None, UNSUPPORTED, ANSWER_OF).tolist() == [1.0] * 8


def test_at_a_lower_rate_the_same_bound_has_the_same_recall_and_a_lower_precision() -> None:
    assert line(None, 0.5)[1:4] == ["50.0%", "100.0%", "50.0%"]
    assert line(0.1, 0.5)[1:4] == ["50.0%", "100.0%", "10.0%"]
