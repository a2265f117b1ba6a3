"""The fused detector as it comes with the package, with equal weights, and fitted to what it is measured on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gasp_core.detectors.detector import AnswerEvidence, Bounds, Detector, FeatureVector, Learner, Need, Training
from gasp_core.detectors.fused_model import (
    DIRECTIONS,
    EQUAL_VERSION,
    VERSION,
    Fused,
    equal_fused,
    fused_features,
    shipped_fused,
)
from gasp_core.detectors.standard.linked import linked
from gasp_core.identity import ScorerIdentity

if TYPE_CHECKING:
    from gasp_core.arrays import Flags, Floats
    from gasp_core.detectors.detector import ScoreAll


def _read(evidence: AnswerEvidence) -> list[FeatureVector]:
    if evidence.two_pass is None:
        raise ValueError("two passes are needed")
    features = _known(evidence) or fused_features(evidence.exchange, evidence.two_pass)
    return [
        FeatureVector(reason=sentence.skip_reason) if values is None else FeatureVector(values)
        for sentence, values in zip(evidence.two_pass.sentences, features, strict=True)
    ]


def _known(evidence: AnswerEvidence) -> list[tuple[float, ...] | None]:
    """The features, which are the first of the terms, where these were read already."""
    return [None if values is None else values[: len(DIRECTIONS)] for values in evidence.terms or ()]


def _scorers() -> tuple[ScorerIdentity, ...]:
    return shipped_fused().scorers


def _directed_logistic(features: Floats, unsupported: Flags) -> ScoreAll:
    from gasp_core.detectors.directed import directed_logistic  # numpy, which those who only score can spare

    return directed_logistic(features, unsupported)


def _detector(name: str, version: str, fused: Callable[[], Fused]) -> Detector:
    return Detector(
        name,
        Need.TWO_PASS,
        _read,
        lambda features: fused().log_odds(features),
        fitted_to=_scorers,
        version=version,
        bounds=Bounds(2.0, 2.0),
        standardise=lambda figures: linked(fused(), figures).log_odds,
    )


FUSED = _detector("fused", VERSION, shipped_fused)
# For scorers that nothing was learned from: weights that were learned from another's scores need not suit theirs.
FUSED_FREE = _detector("fused-free", EQUAL_VERSION, equal_fused)
FUSED_CROSS_VALIDATED = Detector("fused-cv", Need.TWO_PASS, _read, learner=Learner(Training.LABELS, _directed_logistic))
