"""The verdict: the scores of an answer's sentences against the threshold in force. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gasp_core.text.languages import ToldLanguage
from worker.rules.calibration.curve import Curve
from worker.rules.refit.correction import Correction
from worker.rules.selection import Selection

# Stands for every app without a version of its own, in what people read and in SQL.
ALL_APPS = "*"
# What a correction may read of a sentence, in the order of its TERMS.
TermValues = tuple[float, ...]
# What a version may be learned from: a person said so; the app's own unlabelled scores. Others are seeded, calibrated.
MANUAL = "manual"
TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One version for one app (None: every app without its own) and one scorer identity. Both bounds are scores.

    A sentence is flagged if its score is below ``flag_below``; an answer is attributed if its lowest score is below
    ``attribute_below``, which is never lower, so that every flagged answer is attributed. A version that was learned
    from labels has a ``curve``. With a ``correction`` the bounds are of corrected scores: what reviewers taught is
    added to the detector's before they are compared.
    """

    id: int
    app: str | None
    version: int
    flag_below: float
    attribute_below: float
    learned_from: str
    activated_at: datetime
    curve: Curve | None = None
    correction: Correction | None = None

    @property
    def name(self) -> str:
        """The version as people see it, such as ``*/1`` (for all apps) or ``support-bot/3``."""
        return version_name(self.app, self.version)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``scores`` and ``flagged`` have one entry per sentence, None where it has no score.

    So has ``probabilities``, P(unsupported) by the threshold's curve; None for all sentences if it has no curve. So
    have ``terms``, the values that a correction may read, and ``corrections``, what that of the threshold added to the
    detector's score to make this one; None where nothing was. People are asked about the sentences of the
    ``selection``, each of them by so many ``reviewers``. ``language`` is what the answer tells of its own.
    """

    threshold: Threshold
    scores: tuple[float | None, ...]
    flagged: tuple[bool | None, ...]
    wants_attribution: bool
    probabilities: tuple[float | None, ...]
    terms: tuple[TermValues | None, ...]
    corrections: tuple[float | None, ...]
    selection: Selection | None = None
    reviewers: int = 1
    language: ToldLanguage | None = None

    @property
    def lowest_score(self) -> float | None:
        """The answer's score, that of its least grounded sentence; None if no sentence has one."""
        return lowest(self.scores)


def version_name(app: str | None, version: int) -> str:
    """A threshold version as people see it: ``support-bot/3``, or ``*/1`` for every app without its own (None)."""
    return f"{app or ALL_APPS}/{version}"


def judge(
    found: Sequence[float | None], threshold: Threshold, terms: Sequence[TermValues | None] | None = None
) -> Verdict:
    """Compare every scored sentence with the threshold. Higher is more grounded; equal is not flagged.

    ``found`` are the detector's scores, ``terms`` the values that a correction may read, one entry per sentence: None
    where they are not known, which leaves the detector's score as it is.
    """
    known = (None,) * len(found) if terms is None else tuple(terms)
    added = tuple(
        None if score is None else _correction(threshold.correction, values)
        for score, values in zip(found, known, strict=True)
    )
    scores = tuple(_sum(score, correction) for score, correction in zip(found, added, strict=True))
    least = lowest(scores)
    return Verdict(
        threshold=threshold,
        scores=scores,
        flagged=tuple(None if score is None else score < threshold.flag_below for score in scores),
        wants_attribution=least is not None and least < threshold.attribute_below,
        probabilities=tuple(_probability(score, threshold.curve) for score in scores),
        terms=known,
        corrections=added,
    )


def lowest(scores: Sequence[float | None]) -> float | None:
    """The least of those that are there."""
    return min((score for score in scores if score is not None), default=None)


def _correction(correction: Correction | None, values: TermValues | None) -> float | None:
    return None if correction is None or values is None else correction.of(values)


def _sum(score: float | None, correction: float | None) -> float | None:
    return score if score is None or correction is None else score + correction


def _probability(score: float | None, curve: Curve | None) -> float | None:
    return None if score is None or curve is None else curve.probability(score)


def threshold_for(app: str, thresholds: dict[str | None, Threshold]) -> Threshold:
    """The app's own threshold, else the default (key None), which always exists once the worker has started."""
    return thresholds.get(app) or thresholds[None]
