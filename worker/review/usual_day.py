"""The scheduled job that learns from the last week how much there is to ask people about on a day."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from gasp_core.fitting import fitting
from worker.errors import Stopped, WorkerError
from worker.rules.allowance import UsualDay
from worker.rules.selection import expected_weights
from worker.rules.verdict import threshold_for
from worker.store.errors import StoreTimeout
from worker.store.interactions import Interactions
from worker.store.sampling import TRAFFIC_DAYS, Sampling, Traffic
from worker.store.thresholds import Thresholds

SCORES_AT_MOST = 20_000
# How many apps, and how many of their scores, are read with one statement.
APPS_AT_ONCE = 500
SCORES_AT_ONCE = 500_000
# So that an app whose scores hardly differ still has sentences near its threshold.
LEAST_SPREAD = 0.05

log = structlog.get_logger(__name__)


def renew_usual_days(
    sampling: Sampling, thresholds: Thresholds, interactions: Interactions, stop: threading.Event
) -> str:
    """Bring the usual day of every app and scorer up to date, many apps at a time.

    Apps that take too long together are tried in halves, and one that does alone is left as it was. Raises Stopped
    between two steps if a stop was asked for, and WorkerError at the end if an app was left.
    """
    apps = interactions.apps()
    done, left = 0, list(_parts(apps, APPS_AT_ONCE))
    failed = 0
    while left:
        some = left.pop()
        try:
            done += _renew(sampling, thresholds, some, stop)
        except StoreTimeout as error:
            if len(some) > 1:
                left += _parts(some, (len(some) + 1) // 2)
                continue
            failed += 1
            log.error("review_pace_failed", app=some[0], error=str(error))
    if failed:
        raise WorkerError(f"{failed} of {len(apps)} apps failed; the log names them")
    return f"{done} usual days" if done else ""


def usual_day(scores: NDArray[np.float64], sentences_a_day: float, flag_below: float) -> UsualDay:
    """What a day holds, from a sample of its scores, at least one. The spread is their interquartile range."""
    lower, upper = np.percentile(scores, [25, 75])
    spread = max(float(upper - lower), LEAST_SPREAD)
    flagged, sampled = expected_weights(scores, flag_below, spread)
    days = len(scores) / sentences_a_day
    return UsualDay(flagged / days, sampled / days, spread)


def _renew(sampling: Sampling, thresholds: Thresholds, apps: Sequence[str], stop: threading.Event) -> int:
    """How many pairs of one of the apps and a scorer that judged it lately."""
    found = sampling.traffic(apps)
    in_force = {one: thresholds.in_force(one, apps) for one in {traffic.scorer_id for traffic in found}}
    judged_by = {one: threshold_for(one.app, in_force[one.scorer_id]) for one in found}
    # Scores are looked up as they are corrected now; most apps have the same correction, or none.
    for correction in dict.fromkeys(threshold.correction for threshold in judged_by.values()):
        alike = [one for one in found if judged_by[one].correction == correction]
        for some in fitting(alike, _sample_size, SCORES_AT_ONCE):
            if stop.is_set():
                raise Stopped("review_paces")
            asked = [(traffic.app, traffic.scorer_id) for traffic in some]
            scores = sampling.recent_scores(asked, SCORES_AT_MOST, correction)
            days = {
                (traffic.app, traffic.scorer_id): usual_day(
                    np.array(scores[traffic.app, traffic.scorer_id], dtype=np.float64),
                    traffic.sentences_a_day,
                    judged_by[traffic].flag_below,
                )
                for traffic in some
                if (traffic.app, traffic.scorer_id) in scores
            }
            sampling.set_usual_days(days)
    return len(found)


def _sample_size(traffic: Traffic) -> int:
    return min(SCORES_AT_MOST, math.ceil(traffic.sentences_a_day * TRAFFIC_DAYS))


def _parts(apps: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (apps[start : start + size] for start in range(0, len(apps), size))
