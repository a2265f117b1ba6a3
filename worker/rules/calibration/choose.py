"""The thresholds for an objective."""

from __future__ import annotations

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.estimate import Estimates
from worker.rules.calibration.labels import Booleans, Floats, Population
from worker.rules.policy import Objective, ReviewPolicy

# Candidates lie this far apart in the share of the traffic that they flag.
STEPS = 200


def candidates(population: Population, in_force: float) -> Floats:
    """Thresholds worth considering: quantiles of the traffic, the one in force, and one above every score."""
    quantiles = np.quantile(population.scores, np.linspace(0, 1, STEPS + 1))
    return np.unique([*quantiles, np.nextafter(quantiles[-1], np.inf), in_force])


def choose(estimates: Estimates, curve: Curve, policy: ReviewPolicy, sentences_a_day: float) -> int | None:
    """The index of the threshold that fulfils the objective, or None if none does.

    Recall: from where nearly everything is flagged downwards, the last whose lower bound of recall still reaches the
    target; recall only falls on the way, so the level of one bound is that of the walk. Precision: the highest whose
    lower bound of precision reaches the target. Cost: where one more flag stops to pay. Budget: the highest that flags
    no more than the target.
    """
    match policy.objective:
        case Objective.RECALL:
            return _lowest_of_last_run(estimates.recall.low >= policy.target)
        case Objective.PRECISION:
            return _last(estimates.precision.low >= policy.target)
        case Objective.COST:
            pays = curve.over(estimates.thresholds) * policy.target > 1
            return min(int(pays.sum()), len(pays) - 1)
        case Objective.BUDGET:
            return _last(estimates.flagged_share * sentences_a_day <= policy.target)


def _lowest_of_last_run(holds: Booleans) -> int | None:
    """Where the last unbroken stretch of places where it holds begins."""
    last = _last(holds)
    if last is None:
        return None
    breaks = np.flatnonzero(~holds[:last])
    return int(breaks[-1]) + 1 if len(breaks) else 0


def _last(holds: Booleans) -> int | None:
    """The last place where it holds."""
    places = np.flatnonzero(holds)
    return int(places[-1]) if len(places) else None


def attribution_bound(lowest: Floats, share: float, flag_below: float) -> float:
    """Below this lies that share of the answers' ``lowest`` scores; never less than ``flag_below``."""
    if not len(lowest):
        return flag_below
    return max(flag_below, float(np.quantile(lowest, share)))
