"""The setting that says what verdicts go by, and the detector that it chooses.

Scores of two detectors are never compared, so the detector is part of the scorer identity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from gasp_core.detectors.detector import Detector
from gasp_core.detectors.fused import FUSED, FUSED_FREE
from gasp_core.detectors.readout.detector import READOUT, readout_from
from gasp_core.detectors.registry import AUTO, best_for, detector_named, judging_in
from gasp_core.detectors.two_pass import GAP
from gasp_core.errors import DetectorError, ModelUnsupported
from gasp_core.identity import ScorerIdentity
from worker.errors import SettingsError

# Those that have a version to be stored under, and bounds to begin with.
DetectorChoice: TypeAlias = Literal["auto", "gap", "jsd", "fused", "fused-free", "readout"]

# What auto stood for in earlier releases, for scorers that it now stands for something else with.
_EARLIER = {READOUT.name: FUSED, FUSED_FREE.name: GAP}


def choose_detector(
    name: DetectorChoice, scorer: ScorerIdentity, newest: str | None = None, file: Path | None = None
) -> Detector:
    """The detector of that name; auto: the best that the scorer admits. ``file`` is a readout to go by instead.

    It is yet to be standardised (``gasp_core.detectors.standard``). ``newest`` is the method of the newest verdict that
    the same model gave in this database, if there is any; what is by the detector that auto stood for in an earlier
    release goes on with that. Raises SettingsError if the scorer does not admit what was asked for, or if auto would
    not go on with the detector of that verdict: thresholds, labels and people's habits belong to it.
    """
    if file is not None:
        return _of_file(name, scorer, file)
    if name == AUTO:
        return _best_as_before(scorer, newest)
    detector = detector_named(name)
    try:
        detector.require_admission(scorer)
    except ModelUnsupported as error:
        raise SettingsError(f"GASP_DETECTOR: {error}; fused-free, fused, gap and jsd take any model") from error
    return detector


def _of_file(name: DetectorChoice, scorer: ScorerIdentity, file: Path) -> Detector:
    if name != AUTO:
        raise SettingsError(f"GASP_DETECTOR_FILE is what verdicts go by; leave GASP_DETECTOR={name} out, or the file")
    try:
        detector = readout_from(file)
        detector.require_admission(scorer)
    except (DetectorError, ModelUnsupported) as error:
        raise SettingsError(f"GASP_DETECTOR_FILE: {error}") from error
    return detector


def _best_as_before(scorer: ScorerIdentity, newest: str | None) -> Detector:
    best = best_for(scorer)
    before = best if newest is None else judging_in(newest)
    if before is best:
        return best
    if before is _EARLIER.get(best.name) and before.admits(scorer):
        # What a release brings must not stop a worker that is upgraded; it waits to be asked for.
        return before
    try:
        before.require_admission(scorer)
        keep = f"set GASP_DETECTOR={before.name} to go on with it"
    except ModelUnsupported as error:
        keep = f"{error}; take the model and GASP_DTYPE as they were to go on with it"
    raise SettingsError(
        f"GASP_DETECTOR: auto would now judge by {best.name}, and the newest verdict of {scorer.model} in this database"
        f" is by {before.name}: {keep}, or set GASP_DETECTOR={best.name} to change to {best.name}, which has"
        " thresholds of its own"
    )
