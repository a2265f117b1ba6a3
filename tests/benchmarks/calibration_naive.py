"""What people do without a selection probability: the labels of flagged sentences, taken for the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from worker.rules.calibration.choose import candidates, choose
from worker.rules.calibration.estimate import estimate
from worker.rules.calibration.fit import CurveKind, curve
from worker.rules.calibration.guards import too_little
from worker.rules.calibration.labels import LabelledSentence, Population, sample_of
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Recalibration
from worker.rules.policy import ReviewPolicy


def recalibrate_naively(labelled: Sequence[LabelledSentence], policy: ReviewPolicy, in_force: InForce) -> Recalibration:
    """The same objective, solved on labels of equal weight as if nothing but them existed."""
    sample = sample_of([replace(one, probability=1.0) for one in labelled])
    bound = in_force.flag_below
    if too_little(sample):
        return Recalibration(CalibrationOutcome.REFUSED, "too_few", bound, bound, None, {})
    population = Population(sample.scores, sample.scores, float(len(sample)))
    fitted = curve(sample, CurveKind.LOGISTIC)
    thresholds = candidates(population, bound)
    index = choose(estimate(sample, thresholds, sample.scores, fitted), fitted, policy, population.sentences_a_day)
    if index is not None:
        bound = float(thresholds[index])
    numbers = estimate(sample, np.array([bound]), sample.scores, fitted)
    stated = {"recall": numbers.recall, "precision": numbers.precision, "cost": numbers.cost(policy.target)}
    _, low, high = stated[str(policy.objective)].at(0)
    name = str(policy.objective)
    reason = "reached" if index is not None else "unreachable"
    return Recalibration(CalibrationOutcome.NEW, reason, bound, bound, None, {f"{name}_low": low, f"{name}_high": high})
