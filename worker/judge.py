"""The verdict: an answer's scores against the threshold in force. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gasp_core.grounding import AnswerGrounding
from worker.calibration.curve import Curve
from worker.review.selection import Selection


@dataclass(frozen=True, slots=True)
class Threshold:
    """One version for one app (None: every app without its own) and one scorer identity. Both bounds in nats.

    A sentence is flagged if its gap is below ``flag_below``; an answer is attributed if its lowest gap is below
    ``attribute_below``, which is never lower, so that every flagged answer is attributed. A version that was learned
    from labels has a ``curve``.
    """

    id: int
    app: str | None
    version: int
    flag_below: float
    attribute_below: float
    learned_from: str
    activated_at: datetime
    curve: Curve | None = None

    @property
    def name(self) -> str:
        """The version as people see it, such as ``default/1`` or ``support-bot/3``."""
        return f"{self.app or 'default'}/{self.version}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``flagged`` has one entry per sentence, None where the sentence has no score.

    So has ``probabilities``, P(unsupported) by the threshold's curve; None for all sentences if it has no curve. People
    are asked about the sentences of the ``selection``, each of them by so many ``reviewers``.
    """

    threshold: Threshold
    flagged: tuple[bool | None, ...]
    wants_attribution: bool
    probabilities: tuple[float | None, ...]
    selection: Selection | None = None
    reviewers: int = 1


def judge(grounding: AnswerGrounding, threshold: Threshold) -> Verdict:
    """Compare every scored sentence with the threshold. Higher is more grounded; equal is not flagged."""
    flagged = tuple(
        None if sentence.gap is None else sentence.gap < threshold.flag_below for sentence in grounding.sentences
    )
    lowest = grounding.lowest_gap
    return Verdict(
        threshold=threshold,
        flagged=flagged,
        wants_attribution=lowest is not None and lowest < threshold.attribute_below,
        probabilities=tuple(_probability(sentence.gap, threshold.curve) for sentence in grounding.sentences),
    )


def _probability(gap: float | None, curve: Curve | None) -> float | None:
    return None if gap is None or curve is None else curve.probability(gap)


def threshold_for(app: str, thresholds: dict[str | None, Threshold]) -> Threshold:
    """The app's own threshold, else the default (key None), which always exists once the worker has started."""
    return thresholds.get(app) or thresholds[None]
