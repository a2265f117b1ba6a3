"""The seeded threshold in the calibration benchmark: never changed, with the intervals that its table implies."""

from __future__ import annotations

from scipy.stats import binomtest

from gasp_core.detectors.two_pass import GAP
from worker.rules.calibration.recalibrate import CalibrationOutcome, Recalibration
from worker.rules.policy import Objective, ReviewPolicy

# What docs/thresholds.md says of it.
SENTENCES = 1516
FLAGGED = 624
UNSUPPORTED = 213
HITS = 158


def keep_seed(policy: ReviewPolicy) -> Recalibration:
    """The threshold as it is; the interval of what it achieves follows from the counts of its table."""
    name = str(policy.objective)
    low, high = _stated(policy)
    numbers: dict[str, float | int | str | None] = {f"{name}_low": low, f"{name}_high": high}
    bounds = GAP.require_bounds()
    return Recalibration(
        CalibrationOutcome.UNCHANGED, "seeded", bounds.flag_below, bounds.attribute_below, None, numbers
    )


def _stated(policy: ReviewPolicy) -> tuple[float, float]:
    if policy.objective is Objective.RECALL:
        return _exact(HITS, UNSUPPORTED)
    if policy.objective is Objective.PRECISION:
        return _exact(HITS, FLAGGED)
    flagged_share = FLAGGED / SENTENCES
    low, high = _exact(UNSUPPORTED - HITS, SENTENCES - FLAGGED)
    price = policy.target * (1 - flagged_share)
    return flagged_share + price * low, flagged_share + price * high


def _exact(count: int, total: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson."""
    interval = binomtest(count, total).proportion_ci(method="exact")
    return float(interval.low), float(interval.high)
