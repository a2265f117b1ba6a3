"""How scores are made out of readings: standardised and added, or by the classifier of the papers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gasp_core.evaluation.detector import Flags, Floats, Score


def standardised_sum(readings: Floats, _unsupported: Flags) -> Score:
    """Add the numbers of a reading after each is standardised: less its mean, by its standard deviation.

    Both are those of ``readings``, of which there is one at least. A number that never differs counts nothing.
    """
    mean, deviation = readings.mean(axis=0), readings.std(axis=0)
    scale = np.where(deviation > 0, deviation, np.inf)

    def score(others: Floats) -> Floats:
        total: Floats = ((others - mean) / scale).sum(axis=1)
        return total

    return score


def boosted_trees(readings: Floats, unsupported: Flags) -> Score:
    """The classifier of the papers: 300 gradient-boosted trees of 31 leaves at a learning rate of 0.05.

    A score is the log-odds of being grounded. Both labels must be there.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # seconds to import

    trees: Any = HistGradientBoostingClassifier(
        max_iter=300, learning_rate=0.05, max_leaf_nodes=31, early_stopping=False, random_state=0
    )
    trees.fit(readings, unsupported)

    def score(others: Floats) -> Floats:
        log_odds: Floats = -trees.decision_function(others)
        return log_odds

    return score
