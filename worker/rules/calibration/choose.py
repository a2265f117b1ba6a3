"""The thresholds for an objective."""

from __future__ import annotations

import numpy as np

from worker.rules.calibration.curve import Curve
from worker.rules.calibration.estimate import Estimates
from worker.rules.calibration.labels import Booleans, Floats, Population
from worker.rules.calibration.places import places_of
from worker.rules.policy import Objective, ReviewPolicy

# Candidates lie this far apart in the share of the traffic that they flag.
STEPS = 200


def candidates(population: Population, in_force: float) -> Floats:
    """Thresholds worth considering: quantiles of the traffic, the one in force, and one above every score.

    Where a quantile lies within a group of equal scores, the places before and behind the group are taken.
    """
    places = places_of(population.scores)
    wanted = np.linspace(0, len(population.scores), STEPS + 1).round()
    before = np.searchsorted(places.below, wanted, side="right") - 1
    behind = np.searchsorted(places.below, wanted, side="left")
    return np.unique([*places.bounds[before], *places.bounds[behind], in_force])


def choose(estimates: Estimates, curve: Curve, policy: ReviewPolicy, sentences_a_day: float) -> int | None:
    """The index of the threshold that fulfils the objective, or None if none does.

    Recall: from where nearly everything is flagged downwards, the last whose lower bound of recall still reaches the
    target; recall only falls on the way, so the level of one bound is that of the walk. Precision: the highest whose
    lower bound of precision reaches the target, which is one for all thresholds and looks. Cost: where one more flag
    stops to pay. Budget: the highest that flags no more than the target.
    """
    holds = fulfilled(estimates, policy, sentences_a_day)
    match policy.objective:
        case Objective.RECALL:
            return _lowest_of_last_run(holds)
        case Objective.PRECISION | Objective.BUDGET:
            return _last(holds)
        case Objective.COST:
            pays = curve.over(estimates.thresholds) * policy.target > 1
            return min(int(pays.sum()), len(pays) - 1)


def fulfilled(estimates: Estimates, policy: ReviewPolicy, sentences_a_day: float) -> Booleans:
    """At which thresholds the objective can be said to be fulfilled; a cost, which only has a least, at any."""
    match policy.objective:
        case Objective.RECALL:
            return np.asarray(estimates.recall.low >= policy.target)
        case Objective.PRECISION:
            return np.asarray(estimates.sure_precision >= policy.target)
        case Objective.COST:
            return np.ones(len(estimates.thresholds), dtype=np.bool_)
        case Objective.BUDGET:
            return np.asarray(estimates.flagged_share * sentences_a_day <= policy.target)


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
