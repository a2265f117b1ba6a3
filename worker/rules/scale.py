"""Scores under different corrections on one scale: labels as they are judged now, and bounds carried over. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from worker.rules.calibration.labels import Floats, LabelledSentence, Population, Unanswered
from worker.rules.calibration.recalibrate import InForce
from worker.rules.refit.correction import Correction
from worker.rules.refit.lesson import TaughtSentence, UnansweredSentence
from worker.rules.traffic import bound_below


def labelled(sentence: TaughtSentence, score: float) -> LabelledSentence:
    """The labelled sentence with this score in place of the detector's."""
    return LabelledSentence(
        score, sentence.unsupported, sentence.probability, sentence.cluster, sentence.labelled_at, sentence.asked_at
    )


def labelled_under(sentences: Iterable[TaughtSentence], correction: Correction | None) -> list[LabelledSentence]:
    """Labelled sentences with their scores under a correction; those whose terms are not known have none under any."""
    if correction is None:
        return [labelled(one, one.score) for one in sentences]
    return [labelled(one, one.score + correction.of(one.terms)) for one in sentences if one.terms]


def unanswered_under(sentences: Iterable[UnansweredSentence], correction: Correction | None) -> list[Unanswered]:
    """What nobody answered, with its scores under a correction; those without terms have none under any."""
    if correction is None:
        return [Unanswered(one.score, one.probability, one.asked_at) for one in sentences]
    return [
        Unanswered(one.score + correction.of(one.terms), one.probability, one.asked_at)
        for one in sentences
        if one.terms
    ]


def carried_over(in_force: InForce, before: Population, after: Population) -> InForce:
    """Bounds that flag and attribute the same share of ``after`` as those in force do of ``before``.

    Both are the same traffic under two corrections, and none of them is empty. A curve is not carried over: it is of
    other scores.
    """
    flag_below = _same_share(in_force.flag_below, before.scores, after.scores)
    attribute_below = _same_share(in_force.attribute_below, before.lowest, after.lowest)
    return InForce(flag_below, max(flag_below, attribute_below))


def _same_share(bound: float, before: Floats, after: Floats) -> float:
    return bound_below(after, float((before < bound).mean()))
