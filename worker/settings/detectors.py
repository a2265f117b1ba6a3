"""The detectors that a worker can judge by: each makes a sentence's score of what two passes and the texts tell.

Higher is more grounded. A sentence has a score whenever it has a gap. Scores of two detectors are never compared, so
the detector is part of the scorer identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from gasp_core.errors import ModelUnsupported
from gasp_core.fused import VERSION, load_fused, shipped_fused
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.identity import ScorerIdentity
from worker.errors import SettingsError

Scores: TypeAlias = tuple[float | None, ...]
DetectorName: TypeAlias = Literal["gap", "jsd", "fused"]
DetectorChoice: TypeAlias = Literal["auto", "gap", "jsd", "fused"]

DETECTOR_NAMES: tuple[DetectorName, ...] = get_args(DetectorName)


@dataclass(frozen=True, slots=True)
class Detector:
    """``scores`` has an entry per sentence, None where it has no gap. ``version`` changes whenever scores do.

    ``flag_below`` and ``attribute_below`` are for a worker that nobody has calibrated yet; docs/thresholds.md says how
    they were chosen.
    """

    name: DetectorName
    version: str
    scores: Callable[[Exchange, AnswerGrounding], Scores]
    flag_below: float
    attribute_below: float

    def judging(self, scorer: ScorerIdentity) -> ScorerIdentity:
        """The identity of what the scorer and this detector say together."""
        return replace(scorer, method=f"{scorer.method} {self.version}") if self.version else scorer


def choose_detector(name: DetectorChoice, scorer: ScorerIdentity) -> Detector:
    """The detector of that name; auto: fused if its coefficients are for this scorer, else the gap.

    Raises SettingsError if they are not and it was asked for.
    """
    if name == "auto":
        name = "fused" if scorer in shipped_fused().scorers else "gap"
    if name == "gap":
        return GAP
    if name == "jsd":
        return JSD
    try:
        fused = load_fused(scorer)
    except ModelUnsupported as error:
        raise SettingsError(f"GASP_DETECTOR: {error}; gap and jsd take any model") from error
    return Detector("fused", VERSION, fused.scores, flag_below=2.0, attribute_below=2.0)


def _gaps(_exchange: Exchange, grounding: AnswerGrounding) -> Scores:
    return tuple(sentence.gap for sentence in grounding.sentences)


def _divergences(_exchange: Exchange, grounding: AnswerGrounding) -> Scores:
    return tuple(sentence.jsd_no_context for sentence in grounding.sentences)


# The gap was what every verdict went by before there was a choice: its identity is the scorer's own.
GAP = Detector("gap", "", _gaps, flag_below=0.15, attribute_below=0.15)
JSD = Detector("jsd", "jsd", _divergences, flag_below=0.06, attribute_below=0.06)
