"""How scores are made out of features: standardised and added, or by the classifier of the papers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # numpy, which those who only score can spare
    from gasp_core.arrays import Flags, Floats
    from gasp_core.detectors.detector import ScoreAll


def standardised_sum(features: Floats, _unsupported: Flags) -> ScoreAll:
    """Add the features of a sentence after each is standardised: less its mean, by its standard deviation.

    Both are those of ``features`` (n, F), n at least 1. A feature that never differs counts nothing.
    """
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale <= 0] = math.inf

    def score(others: Floats) -> Floats:
        total: Floats = ((others - mean) / scale).sum(axis=1)
        return total

    return score


def boosted_trees(features: Floats, unsupported: Flags) -> ScoreAll:
    """The classifier of the papers: 300 gradient-boosted trees of 31 leaves at a learning rate of 0.05.

    A score is the log-odds of being grounded. Both labels must be there.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # seconds to import

    trees: Any = HistGradientBoostingClassifier(
        max_iter=300, learning_rate=0.05, max_leaf_nodes=31, early_stopping=False, random_state=0
    )
    trees.fit(features, unsupported)

    def score(others: Floats) -> Floats:
        log_odds: Floats = -trees.decision_function(others)
        return log_odds

    return score
