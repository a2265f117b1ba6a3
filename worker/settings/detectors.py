"""The setting that says what verdicts go by, and the detector that it chooses.

Scores of two detectors are never compared, so the detector is part of the scorer identity.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from gasp_core.detectors.detector import Detector
from gasp_core.detectors.registry import AUTO, best_for, detector_named
from gasp_core.errors import ModelUnsupported
from gasp_core.identity import ScorerIdentity
from worker.errors import SettingsError

# Those that have a version to be stored under, and bounds to begin with.
DetectorChoice: TypeAlias = Literal["auto", "gap", "jsd", "fused"]


def choose_detector(name: DetectorChoice, scorer: ScorerIdentity) -> Detector:
    """The detector of that name; auto: the best that the scorer admits.

    Raises SettingsError if it does not admit the one that was asked for.
    """
    if name == AUTO:
        return best_for(scorer)
    detector = detector_named(name)
    try:
        detector.require_admission(scorer)
    except ModelUnsupported as error:
        raise SettingsError(f"GASP_DETECTOR: {error}; gap and jsd take any model") from error
    return detector
