"""Do the labels speak for all of the traffic? Nobody can say what was missed where nobody was asked."""

from __future__ import annotations

import numpy as np

from worker.rules.calibration.estimate import total
from worker.rules.calibration.interval import share
from worker.rules.calibration.labels import Floats, Sample
from worker.rules.calibration.places import places_of

# The labels above a score stand at least for this part of the traffic above it, or might by chance; as below it.
LEAST_SHOWN = 0.5
CONFIDENCE = 0.999
# Bounds of what nobody answered take the labels below it for granted, so some of them must be above the threshold.
MIN_UNFLAGGED = 10
# Looked at are the score in force and the tenths of the traffic.
PARTS = 10


def unspoken_for(sample: Sample, traffic: Floats, in_force: float) -> str | None:
    """Which part of the traffic the labels do not speak for, in a word; None if they speak for all of it.

    ``too_few_unflagged`` is one from the score in force upwards, ``too_few_flagged`` one below it. What labels stand
    for is the sum of their weights, with an interval, so that a few labels of great weight may be right by chance. What
    was asked about and answered by nobody is bounded elsewhere, and counts as spoken for.
    """
    places = places_of(traffic)
    tenths = np.searchsorted(places.below, np.linspace(0, len(traffic), PARTS + 1)[1:-1])
    bounds = np.unique([*places.bounds[tenths], in_force])
    below = np.searchsorted(np.sort(traffic), bounds, side="left") / len(traffic)
    labelled = sample.scores[:, None] < bounds
    likely, every = np.ones(len(sample)), np.ones(len(sample), dtype=np.bool_)
    silent = sample.silent.scores[:, None] < bounds
    flagged, unflagged = (
        total(sample, region, every, likely).with_unheard(sample.silent.weights @ unheard)
        for region, unheard in ((labelled, silent), (~labelled, ~silent))
    )
    unflagged_share = float((traffic >= in_force).mean())
    if unflagged_share >= 1 / PARTS and (sample.scores >= in_force).sum() < MIN_UNFLAGGED:
        return "too_few_unflagged"
    if ((bounds >= in_force) & (share(unflagged, flagged, CONFIDENCE).high < LEAST_SHOWN * (1 - below))).any():
        return "too_few_unflagged"
    if ((bounds <= in_force) & (share(flagged, unflagged, CONFIDENCE).high < LEAST_SHOWN * below)).any():
        return "too_few_flagged"
    return None
