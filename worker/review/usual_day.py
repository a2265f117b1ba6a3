"""The scheduled job that learns from the last week how much there is to ask people about on a day."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from worker.errors import Stopped
from worker.rules.allowance import UsualDay
from worker.rules.selection import expected_weights
from worker.rules.verdict import threshold_for
from worker.store.interactions import Interactions
from worker.store.sampling import Sampling
from worker.store.thresholds import Thresholds

SCORES_AT_MOST = 20_000
# So that an app whose scores hardly differ still has sentences near its threshold.
LEAST_SPREAD = 0.05


def renew_usual_days(
    sampling: Sampling, thresholds: Thresholds, interactions: Interactions, stop: threading.Event
) -> str:
    """Bring the usual day of every app and scorer up to date."""
    done = sum(_renew_app(sampling, thresholds, app, stop) for app in interactions.apps())
    return f"{done} usual days" if done else ""


def usual_day(scores: NDArray[np.float64], sentences_a_day: float, flag_below: float) -> UsualDay:
    """What a day holds, from a sample of its scores, at least one. The spread is their interquartile range."""
    lower, upper = np.percentile(scores, [25, 75])
    spread = max(float(upper - lower), LEAST_SPREAD)
    flagged, sampled = expected_weights(scores, flag_below, spread)
    days = len(scores) / sentences_a_day
    return UsualDay(flagged / days, sampled / days, spread)


def _renew_app(sampling: Sampling, thresholds: Thresholds, app: str, stop: threading.Event) -> int:
    """How many scorers judged the app's answers lately."""
    found = sampling.traffic(app)
    for traffic in found:
        if stop.is_set():
            raise Stopped("review_paces")
        scores = np.array(sampling.recent_scores(app, traffic.scorer_id, SCORES_AT_MOST), dtype=np.float64)
        threshold = threshold_for(app, thresholds.in_force(traffic.scorer_id))
        sampling.set_usual_day(app, traffic.scorer_id, usual_day(scores, traffic.sentences_a_day, threshold.flag_below))
    return len(found)
