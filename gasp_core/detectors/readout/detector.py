"""The readout as a detector: that which comes with the package, and any that was learned from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from gasp_core.detectors.detector import AnswerEvidence, Bounds, Detector, FeatureVector, Need
from gasp_core.detectors.readout.readout import NAME, Readout, load_readout
from gasp_core.detectors.readout.terms import sentence_terms

if TYPE_CHECKING:
    from gasp_core.passes.taps import Tap

# Raised whenever the file that comes with the package changes: it is part of the identity of what a worker stores.
VERSION = "readout-1"
FILE = "readout.v1.safetensors"
BOUNDS = Bounds(1.5, 1.5)


def readout_from(path: Path) -> Detector:
    """The detector of a file. Raises DetectorError, which says what is wrong with the file."""
    readout = load_readout(path)
    return _detector(lambda: readout, version=f"{NAME}-{readout.digest}", bounds=readout.bounds)


@cache
def shipped_readout() -> Readout:
    """The readout that comes with the package."""
    with resources.as_file(resources.files(__package__) / FILE) as path:
        return load_readout(path)


def _detector(readout: Callable[[], Readout], *, version: str, bounds: Bounds) -> Detector:
    return Detector(
        NAME,
        Need.TWO_PASS,
        partial(_read, readout),
        lambda features: _log_odds(readout(), features),
        fitted_to=lambda: readout().scorers,
        version=version,
        bounds=bounds,
        taps=lambda: (tap_of(readout()),),
    )


def _read(readout: Callable[[], Readout], evidence: AnswerEvidence) -> list[FeatureVector]:
    """The features of each sentence: terms, then readings."""
    if evidence.two_pass is None:
        raise ValueError("two passes are needed")
    count = len(readout().weights)
    if any(one.skip_reason is None and len(one.readings) != count for one in evidence.two_pass.sentences):
        raise ValueError("readings of the scorer's states are needed; it has to read by the detector's taps")
    names = [term.name for term in readout().terms]
    terms = sentence_terms(evidence.exchange, evidence.two_pass, names, evidence.terms)
    return [
        FeatureVector(reason=sentence.skip_reason) if values is None else FeatureVector((*values, *sentence.readings))
        for sentence, values in zip(evidence.two_pass.sentences, terms, strict=True)
    ]


def _log_odds(readout: Readout, features: Sequence[float]) -> float:
    count = len(readout.terms)
    return readout.log_odds(features[:count], features[count:])


def tap_of(readout: Readout) -> Tap:
    """What has to be read inside the model."""
    import torch  # seconds, which those who only look at names can spare

    from gasp_core.passes.taps import Tap

    return Tap(
        readout.layer,
        torch.from_numpy(readout.projection.astype("float32")),
        torch.from_numpy(readout.offsets.astype("float32")),
        slopes=torch.from_numpy(readout.weights.astype("float32")),
    )


READOUT = _detector(shipped_readout, version=VERSION, bounds=BOUNDS)
