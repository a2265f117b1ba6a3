"""The small classifier over sentence features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# There are more than a hundred features, most of them rare: strong regularisation, fixed beforehand.
INVERSE_REGULARISATION = 0.01


def fit_scores(
    features: NDArray[np.float64], unsupported: NDArray[np.bool_]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Learn to score sentences from finite features (n, F) and whether each sentence is unsupported.

    What comes back gives scores (m,) of features (m, F): the log-odds of being supported by a logistic regression on
    standardised features, so higher is more grounded. Raises ValueError if the sentences all have one label.
    """
    from sklearn.linear_model import LogisticRegression  # here and below: seconds to import, which few callers need
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=1000)
    model: Any = make_pipeline(StandardScaler(), regression).fit(features, ~unsupported)

    def score(others: NDArray[np.float64]) -> NDArray[np.float64]:
        log_odds: NDArray[np.float64] = model.decision_function(others)
        return log_odds

    return score
