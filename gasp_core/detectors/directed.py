"""Learning the fused detector: a logistic model whose every term keeps the direction that is known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.detector import ScoreAll
from gasp_core.detectors.fused_model import DIRECTIONS, Term

# A ridge on standardised terms, as a share of the log-likelihood of a row: it only steadies terms that say the same.
RIDGE = 1e-3


def directed_terms(features: Floats, unsupported: Flags) -> tuple[tuple[Term, ...], float]:
    """Terms and intercept of the greatest likelihood of being grounded, for features (n, F) in the order of DIRECTIONS.

    A term that would turn against its direction is 0. Both labels must be there.
    """
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    weights = _fitted((features - mean) / deviation, ~unsupported)
    terms = tuple(
        Term(name, *map(float, numbers))
        for name, *numbers in zip(DIRECTIONS, mean, deviation, weights[1:], strict=True)
    )
    return terms, float(weights[0])


def directed_logistic(features: Floats, unsupported: Flags) -> ScoreAll:
    """The log-odds of being grounded by ``directed_terms``."""
    terms, intercept = directed_terms(features, unsupported)
    mean, deviation, coefficients = (
        np.array([getattr(term, name) for term in terms]) for name in ("mean", "deviation", "coefficient")
    )

    def score(others: Floats) -> Floats:
        log_odds: Floats = intercept + ((others - mean) / deviation) @ coefficients
        return log_odds

    return score


def _fitted(columns: Floats, grounded: Flags) -> Floats:
    """Intercept and coefficients."""
    from scipy.optimize import minimize  # half a second to import

    design = np.column_stack([np.ones(len(columns)), columns])
    signs = np.where(grounded, 1.0, -1.0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margins = signs * (design @ weights)
        penalty = np.concatenate([[0.0], weights[1:]])
        slope = -(signs / (1 + np.exp(margins))) @ design / len(design) + RIDGE * penalty
        return float(np.logaddexp(0, -margins).mean() + RIDGE / 2 * penalty @ penalty), slope

    bounds = [(None, None), *((0.0, None) if sign > 0 else (None, 0.0) for sign in DIRECTIONS.values())]
    found: Any = minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds)
    weights: Floats = found.x
    return weights
