"""A detector for the scorer at hand, whichever it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gasp_core.detectors.detector import Detector
from gasp_core.detectors.standard.reference import VERSION

if TYPE_CHECKING:  # numpy, which those who only look at names can spare
    from gasp_core.detectors.standard.figures import ReadsExchanges, Track


def standardised(detector: Detector, scorer: ReadsExchanges, track: Track = iter) -> Detector:
    """The detector as it reads this scorer: as it is if it was fitted to it, else by the scorer's own figures.

    Its version then names the reference set, too. ``track`` is as for ``figures_of``. Raises ModelUnsupported if it
    does not admit the scorer, or that scores too little of the reference set, and ModelOutOfMemory.
    """
    detector.require_admission(scorer.identity)
    if detector.standardise is None or detector.is_fitted_to(scorer.identity):
        return detector
    from gasp_core.detectors.standard.figures import figures_of

    known = scorer.identity.computation
    return replace(
        detector,
        score=detector.standardise(figures_of(scorer, track)),
        fitted_to=lambda: (known,),
        standardise=None,
        version=None if detector.version is None else f"{detector.version}-{VERSION}",
    )
