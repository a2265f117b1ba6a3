"""Many looks at growing numbers of labels: a precision that no threshold has is hardly ever found."""

from __future__ import annotations

import numpy as np

from worker.rules.calibration.choose import candidates, choose
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.estimate import estimate
from worker.rules.calibration.labels import LabelledSentence, Population, sample_of
from worker.rules.policy import Objective, ReviewPolicy

PRIOR = 0.3
A_WEEK = 350
LOOKS = range(4, 53, 4)
LEVEL = Curve((0.0,), (PRIOR,))


def finds(policy: ReviewPolicy, seed: int, apart: float) -> list[bool]:
    """Whether each look of a year finds a threshold. Without ``apart`` scores tell nothing."""
    rng = np.random.default_rng(seed)
    unsupported = rng.random(52 * A_WEEK) < PRIOR
    scores = rng.normal(size=52 * A_WEEK) - apart * unsupported
    in_force = float(np.quantile(scores, 0.15))
    seen = Population(scores[:3000], scores[:3000], 50.0)
    thresholds = candidates(seen, in_force)
    probabilities = np.where(scores < in_force, 0.4, 0.05)
    asked = np.flatnonzero(rng.random(len(scores)) < probabilities)
    labelled = [
        LabelledSentence(float(scores[i]), bool(unsupported[i]), float(probabilities[i]), f"{i:06}", float(i))
        for i in asked
    ]
    found = []
    for week in LOOKS:
        sample = sample_of(labelled[: np.searchsorted(asked, week * A_WEEK)])
        found.append(choose(estimate(sample, thresholds, seen.scores, LEVEL), LEVEL, policy, 50.0) is not None)
    return found


def test_a_year_of_looks_hardly_ever_finds_a_precision_that_no_threshold_has() -> None:
    policy = ReviewPolicy("bot", 50, 0.4, Objective.PRECISION, PRIOR + 0.01, 0.2, 1, 0.15)
    assert sum(any(finds(policy, seed, apart=0.0)) for seed in range(30)) <= 3


def test_it_finds_one_that_there_is() -> None:
    policy = ReviewPolicy("bot", 50, 0.4, Objective.PRECISION, 0.5, 0.2, 1, 0.15)
    assert all(finds(policy, seed, apart=1.0)[-1] for seed in range(10))
