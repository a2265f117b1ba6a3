"""How a sentence's features are taken from what the model says of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gasp_core.detectors.detector import AnswerEvidence, FeatureVector, Read
from gasp_core.grounding import SentenceGrounding

NO_FEATURE = "no_feature"


def by_two_passes(features: Callable[[SentenceGrounding], Iterable[float | None]]) -> Read:
    """Take each sentence's features after two passes; those that are None are left out."""

    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        if evidence.two_pass is None:
            raise ValueError("two passes are needed")
        return [_vector(sentence, features) for sentence in evidence.two_pass.sentences]

    return read


def by_leave_one_out(features: Callable[[SentenceGrounding], Iterable[float | None]]) -> Read:
    """Take each sentence's features after leave-one-out; those that are None are left out."""

    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        if evidence.leave_one_out is None:
            raise ValueError("leave-one-out is needed")
        return [_vector(sentence, features) for sentence in evidence.leave_one_out.sentences]

    return read


def _vector(
    sentence: SentenceGrounding, features: Callable[[SentenceGrounding], Iterable[float | None]]
) -> FeatureVector:
    if sentence.skip_reason is not None:
        return FeatureVector(reason=sentence.skip_reason)
    values = tuple(value for value in features(sentence) if value is not None)
    return FeatureVector(values) if values else FeatureVector(reason=NO_FEATURE)
