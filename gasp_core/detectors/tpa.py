"""The detector that reads where each token's probability comes from (docs/tpa.md)."""

from __future__ import annotations

from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Learner, Need, Training
from gasp_core.detectors.learning import boosted_trees


def _read(evidence: AnswerEvidence) -> list[FeatureVector]:
    from gasp_core.tpa.features import tpa_features  # numpy and torch, which the other detectors can spare

    if evidence.sources is None:
        raise ValueError("the sources of tokens are needed")
    features = tpa_features(evidence.sources).tolist()
    return [
        FeatureVector(reason=skip) if skip else FeatureVector(tuple(row))
        for skip, row in zip(evidence.sources.skips, features, strict=True)
    ]


TPA = Detector("tpa", Need.SOURCES, _read, learner=Learner(Training.LABELS, boosted_trees))
