"""Labels made by hand and at random, for the tests of calibration."""

from __future__ import annotations

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.labels import LabelledSentence, Population

FLAT = Curve((0.0,), (0.5,))


def labels(*rows: tuple[float, bool, float, int | str]) -> list[LabelledSentence]:
    """Score, unsupported, probability and cluster, a second apart."""
    return [LabelledSentence(*row, labelled_at=float(index)) for index, row in enumerate(rows)]


def traffic(count: int, *, seed: int, prior: float = 0.25, apart: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Scores (nats) and truths of sentences; the unsupported lie lower by ``apart`` on average."""
    rng = np.random.default_rng(seed)
    unsupported = rng.random(count) < prior
    return rng.gamma(3, 0.3, count) - apart * unsupported, unsupported


def made_up(
    count: int, *, seed: int, prior: float = 0.25, apart: float = 0.8, name: str = "a"
) -> list[LabelledSentence]:
    """Labels of sentences in answers of two, half of the traffic's high ones left out at a known rate."""
    rng = np.random.default_rng(seed + 1)
    scores, unsupported = traffic(count, seed=seed, prior=prior, apart=apart)
    probabilities = np.where(scores < 0.4, 1.0, 0.5)
    return [
        LabelledSentence(float(scores[i]), bool(unsupported[i]), float(probabilities[i]), f"{name}-{i // 2}", float(i))
        for i in range(count)
        if rng.random() < probabilities[i]
    ]


def population(count: int = 2000, *, seed: int = 9, prior: float = 0.25, apart: float = 0.8) -> Population:
    """Unlabelled traffic of the same kind."""
    scores, _ = traffic(count, seed=seed, prior=prior, apart=apart)
    return Population(scores, scores.reshape(-1, 4).min(axis=1), 500.0)
