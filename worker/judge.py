"""The verdict: an answer's scores against the threshold in force. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gasp_core.grounding import AnswerGrounding


@dataclass(frozen=True, slots=True)
class Threshold:
    """One version for one app (None: every app without its own) and one scorer identity. Both bounds in nats.

    A sentence is flagged if its gap is below ``flag_below``; an answer is attributed if its lowest gap is below
    ``attribute_below``, which is never lower, so that every flagged answer is attributed.
    """

    id: int
    app: str | None
    version: int
    flag_below: float
    attribute_below: float
    learned_from: str
    activated_at: datetime

    @property
    def name(self) -> str:
        """The version as people see it, such as ``default/1`` or ``support-bot/3``."""
        return f"{self.app or 'default'}/{self.version}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``flagged`` has one entry per sentence, None where the sentence has no score."""

    threshold: Threshold
    flagged: tuple[bool | None, ...]
    wants_attribution: bool


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
    )


def threshold_for(app: str, thresholds: dict[str | None, Threshold]) -> Threshold:
    """The app's own threshold, else the default (key None), which always exists once the worker has started."""
    return thresholds.get(app) or thresholds[None]
