"""Fitting a readout: a projection of the states without labels, then a logistic model with a ridge.

Tried on what there is to learn from, as docs/evaluation.md says: the states of one layer at two thirds of the depth
tell as much as those of several; 64 numbers of them as much as all; their change without context, their largest values
and what heads attend to add nothing that carries to other sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.fused_model import DIRECTIONS, Term
from gasp_core.detectors.readout.terms import TERMS
from gasp_core.training.rows import Rows

READINGS = 64
FOLDS = 5
# A ridge on standardised terms, as a share of the log-likelihood of a row: it only steadies terms that say the same.
TERM_RIDGE = 1e-3
# On readings, of which a state of unit deviation has this sum of squares at most. The first is for much to learn from.
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3)
SMALLEST_DEVIATION = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was fitted: readings are ``states @ projection + offsets``; see ``Readout``."""

    projection: Floats
    offsets: Floats
    weights: Floats
    terms: tuple[Term, ...]
    intercept: float

    def log_odds(self, rows: Rows) -> Floats:
        """The log-odds of being grounded of each row, (n,)."""
        mean, deviation, coefficient = (
            np.array([getattr(term, name) for term in self.terms]) for name in ("mean", "deviation", "coefficient")
        )
        read = (rows.states @ self.projection + self.offsets) @ self.weights
        found: Floats = self.intercept + ((rows.terms - mean) / deviation) @ coefficient + read
        return found

    def calibrated(self, slope: float, shift: float) -> Fit:
        """The same with log-odds that are ``slope`` times those of before, plus ``shift``."""
        terms = tuple(Term(one.name, one.mean, one.deviation, one.coefficient * slope) for one in self.terms)
        return Fit(self.projection, self.offsets, self.weights * slope, terms, self.intercept * slope + shift)


def fit(rows: Rows, ridge: float) -> Fit:
    """Fit all rows. Each set has an intercept of its own, so that nothing is learned from how sets differ in labels.

    A term of fused keeps the direction that is known beforehand. Both labels must be there.
    """
    projection, offsets = _projection(rows.states)
    mean, deviation = rows.terms.mean(axis=0), rows.terms.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    design = np.column_stack([(rows.terms - mean) / deviation, rows.states @ projection + offsets])
    count = rows.terms.shape[1]
    ridges = np.concatenate([np.full(count, TERM_RIDGE), np.full(design.shape[1] - count, ridge)])
    weights, intercepts = _logistic(design, rows, ridges)
    terms = tuple(
        Term(name, *map(float, numbers)) for name, *numbers in zip(TERMS, mean, deviation, weights[:count], strict=True)
    )
    shares = np.bincount(rows.sets, minlength=len(intercepts)) / len(rows)
    return Fit(projection, offsets, weights[count:], terms, float(intercepts @ shares))


def out_of_fold(rows: Rows, ridge: float, seed: int = 0) -> Floats:
    """The log-odds of each row by what was learned from other sources, (n,)."""
    scores = np.zeros(len(rows))
    for held_out in folds(rows, seed):
        scores[held_out] = fit(rows.where(~held_out), ridge).log_odds(rows.where(held_out))
    return scores


def folds(rows: Rows, seed: int = 0) -> list[Flags]:
    """Which rows are held out, fold by fold: whole sources, of each set about alike."""
    from sklearn.model_selection import StratifiedGroupKFold  # seconds to import

    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    kinds = rows.sets * 2 + rows.unsupported
    held_out = []
    for _, at in splitter.split(rows.terms, kinds, rows.sources):
        flags = np.zeros(len(rows), dtype=bool)
        flags[at] = True
        held_out.append(flags)
    return held_out


def platt(scores: Floats, grounded: Flags, weights: Floats) -> tuple[float, float]:
    """Slope and shift that make log-odds of scores (n,), of greatest weighted likelihood. The slope is above 0."""
    from scipy.optimize import minimize  # half a second to import

    signs = np.where(grounded, 1.0, -1.0)

    def loss(at: Floats) -> float:
        return float((weights * np.logaddexp(0, -signs * (np.exp(at[0]) * scores + at[1]))).mean())

    found: Any = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    return float(np.exp(found.x[0])), float(found.x[1])


def _projection(states: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """The directions in which standardised states (n, D) differ most: (D, M) and offsets (M,), at most READINGS."""
    mean, deviation = states.mean(axis=0), states.std(axis=0)
    deviation = np.maximum(deviation, SMALLEST_DEVIATION)
    standard = (states - mean) / deviation
    _, directions = np.linalg.eigh(standard.T.astype(np.float64) @ standard / len(states))
    # The largest come last. A fifth, so that the first of them have about the size of a standardised term.
    chosen = directions[:, ::-1][:, : min(READINGS, len(states) - 1)] / 5
    projection = chosen / deviation[:, None]
    return projection, -(mean @ projection)


def _logistic(design: Floats, rows: Rows, ridges: Floats) -> tuple[Floats, Floats]:
    """Coefficients (F,) and an intercept for each set, of the weighted rows whose features the design (n, F) has."""
    from scipy.optimize import minimize  # half a second to import

    sets, of_rows = rows.sets, rows.weights
    count, features = int(np.max(sets)) + 1, design.shape[1]
    signs = np.where(rows.unsupported, -1.0, 1.0)

    def weigh(at: Floats) -> tuple[float, Floats]:
        weights, intercepts = at[:features], at[features:]
        margins = signs * (design @ weights + intercepts[sets])
        slopes = -signs * of_rows / (1 + np.exp(np.minimum(margins, 500.0))) / len(design)
        gradient = np.concatenate([slopes @ design + ridges * weights, np.bincount(sets, slopes, minlength=count)])
        loss = (of_rows * np.logaddexp(0, -margins)).mean() + (ridges * weights**2).sum() / 2
        return float(loss), gradient

    known = [(0.0, None) if sign > 0 else (None, 0.0) for sign in DIRECTIONS.values()]
    bounds = [*known, *[(None, None)] * (features + count - len(known))]
    found: Any = minimize(
        weigh, np.zeros(features + count), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}
    )
    return found.x[:features], found.x[features:]
