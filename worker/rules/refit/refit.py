"""From labels to a correction, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from worker.rules.calibration.fit import folds
from worker.rules.calibration.guards import MIN_EFFECTIVE_N
from worker.rules.calibration.labels import Floats
from worker.rules.refit.area import area, compare
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.refit.lesson import Lesson, TaughtSentence, lesson_of
from worker.rules.refit.ridge import fit, usual

MIN_LABELS = 100
MIN_UNSUPPORTED = 10
MIN_SUPPORTED = 10
MIN_INTERACTIONS = 20
# What no score and no term is, so that nothing overflows; and what no sentence was ever asked with.
TOO_LARGE, LEAST_PROBABILITY = 1e9, 1e-9
# A one-sided test at 5 %.
STANDARD_ERRORS = 1.645

RefitNumbers = dict[str, float]


class RefitOutcome(StrEnum):
    """The outcome of a refit: another correction, the same or none as before, none any more, or too little to say."""

    NEW = "new"
    UNCHANGED = "unchanged"
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Taught:
    """The correction in force, and the newest moment (``labelled_at``) of the labels that it was learned from."""

    correction: Correction
    learned_until: float


@dataclass(frozen=True, slots=True)
class Refit:
    """The outcome, its reason in a stable word, the correction to use from now on (None: none), and its figures.

    ``reason`` is ``better`` with NEW, ``no_better`` with UNCHANGED, ``worse_than_shipped`` with WITHDRAWN, and with
    REFUSED one of not_finite, bad_probability, too_few_labels, too_few_unsupported, too_few_supported,
    too_few_interactions, too_little_effective, no_spread. ``scores`` has the score of each label, in the order that
    they came in, under ``correction`` as it is learned without the label's own interaction: what thresholds are
    recalibrated on. ``numbers`` is flat and JSON.
    """

    outcome: RefitOutcome
    reason: str
    correction: Correction | None
    scores: tuple[float, ...]
    numbers: RefitNumbers


def refit(labels: Sequence[TaughtSentence], in_force: Taught | None = None) -> Refit:
    """Learn a correction anew, and keep what is better; never raises for the data, which may be odd in any way.

    The same labels give the same result, whatever their order.
    """
    kept = None if in_force is None else in_force.correction
    if reason := _unusable(labels):
        return Refit(RefitOutcome.REFUSED, reason, kept, tuple(one.score for one in labels), {"n_labels": len(labels)})
    lesson = lesson_of(labels)
    numbers: RefitNumbers = {
        "n_labels": len(lesson),
        "n_unsupported": int(lesson.unsupported.sum()),
        "n_interactions": len(np.unique(lesson.clusters)),
        "effective_n": lesson.effective_n,
    }
    if reason := _too_little(lesson):
        return Refit(RefitOutcome.REFUSED, reason, kept, lesson.in_their_order(lesson.corrected(kept)), numbers)
    return _decide(lesson, in_force, numbers)


def out_of_fold(lesson: Lesson) -> Floats:
    """The corrected score of each sentence, by what was learned from other interactions, (n,)."""
    scores, known = np.empty(len(lesson)), usual(lesson)
    for training, test in folds(lesson.clusters):
        learned = _fitted(lesson.where(training), known)
        scores[test] = lesson.where(test).corrected(learned)
    return scores


def _decide(lesson: Lesson, in_force: Taught | None, numbers: RefitNumbers) -> Refit:
    challenger = out_of_fold(lesson)
    champion = lesson.scores if in_force is None else _unseen(lesson, in_force)
    gain = compare(lesson, challenger, champion)
    numbers |= {
        "auc_champion": area(lesson, champion),
        "auc_challenger": area(lesson, challenger),
        "difference": gain.difference,
        "standard_error": gain.standard_error,
        "auc_shipped": area(lesson, lesson.scores),
        "auc_lexical": area(lesson, -lesson.terms[:, TERMS.index("novel_words")]),
    }
    # Against what ships, too: a challenger that beats a champion gone bad may be no better than no correction.
    if gain.is_better(STANDARD_ERRORS) and compare(lesson, challenger, lesson.scores).is_better(STANDARD_ERRORS):
        learned = replace(fit(lesson, usual(lesson)), learned_until=float(lesson.labelled_at.max()))
        return Refit(RefitOutcome.NEW, "better", learned, lesson.in_their_order(challenger), numbers)
    if in_force is not None and compare(lesson, champion, lesson.scores).is_worse(STANDARD_ERRORS):
        return Refit(RefitOutcome.WITHDRAWN, "worse_than_shipped", None, lesson.in_their_order(lesson.scores), numbers)
    kept = None if in_force is None else in_force.correction
    return Refit(RefitOutcome.UNCHANGED, "no_better", kept, lesson.in_their_order(champion), numbers)


def _unseen(lesson: Lesson, in_force: Taught) -> Floats:
    """Honest scores of the champion: as it is, of interactions that it did not see; learned without them, of others."""
    scores = lesson.corrected(in_force.correction)
    earlier = lesson.labelled_at <= in_force.learned_until
    seen = np.isin(lesson.clusters, lesson.clusters[earlier])
    known = usual(lesson)
    for training, test in folds(lesson.clusters):
        at = test & seen
        if at.any():
            scores[at] = lesson.where(at).corrected(_fitted(lesson.where(training & earlier), known))
    return scores


def _fitted(lesson: Lesson, known: tuple[Floats, Floats]) -> Correction | None:
    """What is learned of them; nothing of one kind of label alone."""
    return fit(lesson, known) if 0 < lesson.unsupported.sum() < len(lesson) else None


def _unusable(labels: Sequence[TaughtSentence]) -> str | None:
    if any(len(one.terms) != len(TERMS) for one in labels):
        return "not_finite"
    read = np.array([(one.score, *one.terms) for one in labels])
    if not np.isfinite([one.labelled_at for one in labels]).all() or not (np.abs(read) < TOO_LARGE).all():
        return "not_finite"
    if any(not LEAST_PROBABILITY <= one.probability <= 1 for one in labels):
        return "bad_probability"
    return None


def _too_little(lesson: Lesson) -> str | None:
    unsupported = int(lesson.unsupported.sum())
    if len(lesson) < MIN_LABELS:
        return "too_few_labels"
    if unsupported < MIN_UNSUPPORTED:
        return "too_few_unsupported"
    if len(lesson) - unsupported < MIN_SUPPORTED:
        return "too_few_supported"
    if len(np.unique(lesson.clusters)) < MIN_INTERACTIONS:
        return "too_few_interactions"
    if lesson.effective_n < MIN_EFFECTIVE_N:
        return "too_little_effective"
    return "no_spread" if np.ptp(lesson.scores) == 0 else None
