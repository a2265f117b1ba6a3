"""Every sentence of every answer with its label and the scores of the detectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Learn, Learner, Training
from gasp_core.evaluation.data import LabelledAnswer
from gasp_core.evaluation.labels import SentenceLabel, sentence_labels

FOLDS = 5
TOO_LITTLE = "too_little_to_learn_from"


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What one detector says of each sentence: a number, higher being more grounded, or NaN and a reason."""

    values: Floats
    reasons: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The sentences of all answers, in order. ``answer_of`` is the place of each one's answer in ``answers``."""

    answers: tuple[LabelledAnswer, ...]
    answer_of: Any  # (n,) of whole numbers
    labels: tuple[SentenceLabel, ...]
    scores: dict[str, Scores]

    @property
    def sources(self) -> list[str]:
        """The source of each sentence."""
        return [self.answers[at].source for at in self.answer_of]


def tabulate(
    answers: Sequence[LabelledAnswer], evidence: Iterable[AnswerEvidence], detectors: Sequence[Detector], *, seed: int
) -> Table:
    """Read every answer's evidence once, then score by each detector. ``seed`` deals the sources out into folds."""
    answer_of: list[int] = []
    labels: list[SentenceLabel] = []
    features: dict[str, list[FeatureVector]] = {detector.name: [] for detector in detectors}
    for at, (answer, known) in enumerate(zip(answers, evidence, strict=True)):
        answer_of += [at] * len(known.sentences)
        labels += sentence_labels(answer, known.sentences)
        for detector in detectors:
            features[detector.name] += detector.read(known)
    table = Table(tuple(answers), np.array(answer_of, dtype=np.intp), tuple(labels), {})
    for detector in detectors:
        table.scores[detector.name] = _scored(detector, features[detector.name], table, seed)
    return table


def _scored(detector: Detector, features: Sequence[FeatureVector], table: Table, seed: int) -> Scores:
    if detector.learner is None:
        values = np.array(detector.scored(features), dtype=np.float64)  # None is NaN
    else:
        values = _learned(detector.learner, features, table, seed)
    reasons = [
        one.reason or (None if np.isfinite(value) else TOO_LITTLE) for one, value in zip(features, values, strict=True)
    ]
    return Scores(values, tuple(reasons))


def _learned(learner: Learner, features: Sequence[FeatureVector], table: Table, seed: int) -> Floats:
    there = np.array([one.reason is None for one in features], dtype=bool)
    values = np.full(len(features), np.nan)
    if there.any():
        matrix = np.array([one.values for one in features if one.reason is None])
        if learner.training is Training.LABELS:
            values[there] = _by_labels(learner.learn, matrix, np.flatnonzero(there), table, seed)
        else:
            values[there] = learner.learn(matrix, np.zeros(len(matrix), dtype=bool))(matrix)
    return values


def _by_labels(learn: Learn, matrix: Floats, rows: Any, table: Table, seed: int) -> Floats:  # noqa: ANN401 - (n,)
    return _out_of_fold(
        learn,
        matrix,
        known=np.array([table.labels[row].unsupported is not None for row in rows]),
        unsupported=np.array([bool(table.labels[row].unsupported) for row in rows]),
        sources=[table.answers[table.answer_of[row]].source for row in rows],
        seed=seed,
    )


def _out_of_fold(
    learn: Learn, matrix: Floats, *, known: Flags, unsupported: Flags, sources: Sequence[str], seed: int
) -> Floats:
    """Each row by what was learned from the labelled rows of other sources; NaN where that is too little."""
    from sklearn.model_selection import StratifiedGroupKFold  # seconds to import

    values = np.full(len(matrix), np.nan)
    smallest = min(Counter(unsupported.tolist()).values()) if len(set(unsupported.tolist())) == 2 else 0
    folds = min(FOLDS, smallest, len(set(sources)))
    if folds < 2:
        return values
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for training, held_out in splitter.split(matrix, unsupported, sources):
        seen = training[known[training]]
        if len(set(unsupported[seen].tolist())) == 2:
            values[held_out] = learn(matrix[seen], unsupported[seen])(matrix[held_out])
    return values
