"""Where a threshold can lie: between two groups of equal scores, which are flagged together or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.labels import Codes, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Every threshold that flags another part of some scores: ``bounds`` rise, and each has so many scores ``below``.

    The first has none below it and the last has all.
    """

    bounds: Floats
    below: Codes


def places_of(scores: Floats) -> Places:
    """The places of scores, of which there is at least one.

    Each lies half way between two scores, so that it makes no difference in which order a score was added up.
    """
    distinct, counts = np.unique(scores, return_counts=True)
    middle = distinct[:-1] + np.diff(distinct) / 2
    # Between two neighbours of the number line there is no middle: then the bound is the upper one.
    middle = np.where(middle > distinct[:-1], middle, distinct[1:])
    above = np.nextafter(distinct[-1], np.inf)
    return Places(np.array([distinct[0], *middle, above]), np.concatenate([[0], np.cumsum(counts)]))
