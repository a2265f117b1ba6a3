"""The fused detector as it comes with the package, and its variants that learn from what they are measured on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gasp_core.detectors.detector import AnswerEvidence, Bounds, Detector, FeatureVector, Learner, Need, Training
from gasp_core.detectors.fused_model import VERSION, fused_features, shipped_fused
from gasp_core.identity import ScorerIdentity

if TYPE_CHECKING:
    from gasp_core.arrays import Flags, Floats
    from gasp_core.detectors.detector import ScoreAll


def _read(evidence: AnswerEvidence) -> list[FeatureVector]:
    if evidence.two_pass is None:
        raise ValueError("two passes are needed")
    features = fused_features(evidence.exchange, evidence.two_pass)
    return [
        FeatureVector(reason=sentence.skip_reason) if values is None else FeatureVector(values)
        for sentence, values in zip(evidence.two_pass.sentences, features, strict=True)
    ]


def _log_odds(features: Sequence[float]) -> float:
    return shipped_fused().log_odds(features)


def _scorers() -> tuple[ScorerIdentity, ...]:
    return shipped_fused().scorers


def _directed_logistic(features: Floats, unsupported: Flags) -> ScoreAll:
    from gasp_core.detectors.directed import directed_logistic  # numpy, which those who only score can spare

    return directed_logistic(features, unsupported)


def _directed_sum(features: Floats, unsupported: Flags) -> ScoreAll:
    from gasp_core.detectors.directed import directed_sum  # as above

    return directed_sum(features, unsupported)


FUSED = Detector("fused", Need.TWO_PASS, _read, _log_odds, fitted_to=_scorers, version=VERSION, bounds=Bounds(2.0, 2.0))
FUSED_CROSS_VALIDATED = Detector("fused-cv", Need.TWO_PASS, _read, learner=Learner(Training.LABELS, _directed_logistic))
FUSED_FREE = Detector("fused-free", Need.TWO_PASS, _read, learner=Learner(Training.SAMPLE, _directed_sum))
