"""The bounds of an app that has no labels yet: the lowest share of its own scores. Pure.

A score at which an app's flags are worth reading carries to no other app, and not to other traffic of the same one. The
order of its scores does, so the share of them that is flagged is what holds until labels say more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from worker.rules.calibration.choose import attribution_bound
from worker.rules.calibration.labels import Floats
from worker.rules.calibration.recalibrate import between
from worker.rules.policy import Objective, ReviewPolicy
from worker.rules.verdict import MANUAL, TRAFFIC, Threshold

# The share that a bound from 200 scores really flags has a standard error of a sixth of it, at a share of 15 %.
LEAST_SENTENCES = 200
# The sentences of one answer are alike.
LEAST_ANSWERS = 20
# A bound is left where it is while it flags more or less than this part of the share too much or too little, or than
# so many standard errors of it, which would be noise.
MOST_OFF = 0.2
NOISE = 2.0


@dataclass(frozen=True, slots=True)
class Recent:
    """The scores of an app's sentences, and the ``lowest`` of each answer.

    The answers were stored from ``since`` to ``until``.
    """

    scores: Floats
    lowest: Floats
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class TrafficBounds:
    """Two scores as in a ``Threshold``, and the share in (0, 1) of the sentences that is meant to be flagged."""

    flag_below: float
    attribute_below: float
    share: float


def follows_traffic(in_force: Threshold) -> bool:
    """Whether bounds from the app's traffic may stand in place of what it is judged by now.

    Never in place of its own learned or set by a person, nor of what a person set for all apps. What is seeded for all,
    or learned from the labels of other apps, says little about this one.
    """
    if in_force.app is None:
        return in_force.learned_from != MANUAL
    return in_force.learned_from == TRAFFIC


def share_to_flag(policy: ReviewPolicy, sentences_a_day: float) -> float:
    """The policy's share, or what its budget can read if the policy's objective is that and it is less."""
    if policy.objective is not Objective.BUDGET:
        return policy.flag_share
    return min(policy.flag_share, policy.target / max(sentences_a_day, 1.0))


def traffic_bounds(recent: Recent, share: float, attribution_share: float) -> TrafficBounds | None:
    """The bounds below which the lowest shares of the sentences and of the answers lie.

    None while there are too few scores, or if all of them are the same.
    """
    if len(recent.scores) < LEAST_SENTENCES or len(recent.lowest) < LEAST_ANSWERS or np.ptp(recent.scores) == 0:
        return None
    flag_below = bound_below(recent.scores, share)
    return TrafficBounds(flag_below, attribution_bound(recent.lowest, attribution_share, flag_below), share)


def bound_below(scores: Floats, share: float) -> float:
    """The bound that flags as near to the share of the scores as can be; equal scores are flagged together."""
    ordered, wanted = np.sort(scores), share * len(scores)
    edge = float(ordered[min(round(wanted), len(ordered) - 1)])
    fewer, more = (int(np.searchsorted(ordered, edge, side)) for side in ("left", "right"))
    return edge if wanted - fewer <= more - wanted else math.nextafter(edge, math.inf)


def has_moved(recent: Recent, present: Threshold, wanted: TrafficBounds) -> bool:
    """Whether the present bounds, of earlier traffic, flag or attribute another share of what is recent."""
    flags = between(recent.scores, present.flag_below, wanted.flag_below)
    attributions = between(recent.lowest, present.attribute_below, wanted.attribute_below)
    attributed = float((recent.lowest < wanted.attribute_below).mean())
    return flags > _tolerance(wanted.share, len(recent.scores)) or attributions > _tolerance(
        attributed, len(recent.lowest)
    )


def _tolerance(share: float, n: int) -> float:
    return max(MOST_OFF * share, NOISE * math.sqrt(share * (1 - share) / n))
