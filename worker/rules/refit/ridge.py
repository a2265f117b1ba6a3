"""Fitting a correction: a logistic model of the score and the terms, held back towards adding nothing."""

from __future__ import annotations

import numpy as np

from gasp_core.detectors.fused_model import Term
from gasp_core.detectors.readout.terms import COVERAGE
from worker.rules.calibration.labels import Booleans, Floats
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.refit.lesson import Lesson

# Rows that the coefficient of a standardised term is held back by. Fixed: chosen anew from few labels it is unsafe.
RIDGE = 100.0
# The same for what the detectors that ship do not all read.
EXTRA_RIDGE = 300.0
EXTRAS = (COVERAGE, "surprisal")
# What a deviation of the score is taken to add to the log-odds, how strongly, and what it adds at least.
USUAL_SLOPE, SLOPE_RIDGE, LEAST_SLOPE = 1.5, 30.0, 0.25
# On the intercept, so that it stays finite.
FREE_RIDGE = 0.1
# Half of what terms deviate by in answers to questions, in the order of TERMS: where a term happens to be nearly the
# same in all labels, it would count many times in the traffic.
LEAST_DEVIATIONS = (0.04, 0.4, 0.15, 0.17, 0.12, 0.08, 0.07, 0.26, 0.15, 0.35)
MOST_STEPS, TOLERANCE = 50, 1e-8


def fit(lesson: Lesson, usual: tuple[Floats, Floats]) -> Correction:
    """The correction of the greatest likelihood less what holds it back; ``usual`` are mean and deviation by term.

    The labels have the weight of as many as they tell as much as (Kish), so that very unequal ones are held back more.
    """
    mean, deviation = usual
    middle, width = float(lesson.scores.mean()), float(lesson.scores.std()) or 1.0
    columns = np.column_stack([(lesson.scores - middle) / width, (lesson.terms - mean) / deviation])
    weights = lesson.weights * (lesson.effective_n / lesson.weights.sum())
    slope, coefficients = _logistic(columns, ~lesson.unsupported, weights)
    # The score stays as it is, and what is added is in its units.
    scale = width / slope
    return Correction(
        tuple(
            Term(name, *map(float, numbers))
            for name, *numbers in zip(TERMS, mean, deviation, coefficients * scale, strict=True)
        )
    )


def usual(lesson: Lesson) -> tuple[Floats, Floats]:
    """Weighted mean and deviation of each term, (T,); a deviation is at least that of LEAST_DEVIATIONS."""
    mean = np.average(lesson.terms, axis=0, weights=lesson.weights)
    deviation = np.sqrt(np.average((lesson.terms - mean) ** 2, axis=0, weights=lesson.weights))
    return mean, np.maximum(deviation, LEAST_DEVIATIONS)


def _logistic(columns: Floats, grounded: Booleans, weights: Floats) -> tuple[float, Floats]:
    """What a deviation of the score adds to the log-odds, at least LEAST_SLOPE, and what those of the terms add."""
    ridges = np.array([EXTRA_RIDGE if name in EXTRAS else RIDGE for name in TERMS])
    design = np.column_stack([np.ones(len(columns)), columns])
    usually, at_least = USUAL_SLOPE * columns[:, 0], LEAST_SLOPE * columns[:, 0]
    found = _newton(design, usually, grounded, weights, np.array([FREE_RIDGE, SLOPE_RIDGE, *ridges]))
    if (slope := USUAL_SLOPE + float(found[1])) >= LEAST_SLOPE:
        return slope, found[2:]
    found = _newton(np.delete(design, 1, axis=1), at_least, grounded, weights, np.array([FREE_RIDGE, *ridges]))
    return LEAST_SLOPE, found[1:]


def _newton(design: Floats, offset: Floats, grounded: Booleans, weights: Floats, ridges: Floats) -> Floats:
    """Coefficients (F,) by Newton's method, each step halved until it is one forward."""
    signs = np.where(grounded, 1.0, -1.0)

    def loss(at: Floats) -> float:
        return float(weights @ np.logaddexp(0, -signs * (design @ at + offset)) + ridges @ at**2 / 2)

    at = np.zeros(design.shape[1])
    present = loss(at)
    for _ in range(MOST_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ at + offset, -500, 500)))
        slope = design.T @ (weights * (chance - grounded)) + ridges * at
        curvature = (design.T * (weights * chance * (1 - chance))) @ design + np.diag(ridges)
        step = np.linalg.solve(curvature, slope)
        while loss(at - step) > present and np.abs(step).max() > TOLERANCE:
            step /= 2
        at = at - step
        present = loss(at)
        if np.abs(step).max() <= TOLERANCE:
            break
    return at
