"""Every sentence of every answer with its label and the scores of the detectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gasp_core.evaluation.data import LabelledAnswer
from gasp_core.evaluation.detector import Detector, Evidence, Flags, Floats, Reading, Training
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
    answers: Sequence[LabelledAnswer], evidence: Iterable[Evidence], detectors: Sequence[Detector], *, seed: int
) -> Table:
    """Read every answer's evidence once, then score by each detector. ``seed`` deals the sources out into folds."""
    answer_of: list[int] = []
    labels: list[SentenceLabel] = []
    readings: dict[str, list[Reading]] = {detector.name: [] for detector in detectors}
    for at, (answer, known) in enumerate(zip(answers, evidence, strict=True)):
        answer_of += [at] * len(known.sentences)
        labels += sentence_labels(answer, known.sentences)
        for detector in detectors:
            readings[detector.name] += detector.read(known)
    table = Table(tuple(answers), np.array(answer_of, dtype=np.intp), tuple(labels), {})
    for detector in detectors:
        table.scores[detector.name] = _scored(detector, readings[detector.name], table, seed)
    return table


def _scored(detector: Detector, readings: Sequence[Reading], table: Table, seed: int) -> Scores:
    there = np.array([reading.reason is None for reading in readings], dtype=bool)
    values = np.full(len(readings), np.nan)
    if there.any():
        matrix = np.array([reading.values for reading in readings if reading.reason is None])
        values[there] = _values(detector, matrix, np.flatnonzero(there), table, seed)
    reasons = [
        reading.reason or (None if np.isfinite(value) else TOO_LITTLE)
        for reading, value in zip(readings, values, strict=True)
    ]
    return Scores(values, tuple(reasons))


def _values(detector: Detector, matrix: Floats, rows: Any, table: Table, seed: int) -> Floats:  # noqa: ANN401 - (n,)
    if detector.training is not Training.LABELS:
        return detector.fit(matrix, np.zeros(len(matrix), dtype=bool))(matrix)
    return _out_of_fold(
        detector,
        matrix,
        known=np.array([table.labels[row].unsupported is not None for row in rows]),
        unsupported=np.array([bool(table.labels[row].unsupported) for row in rows]),
        sources=[table.answers[table.answer_of[row]].source for row in rows],
        seed=seed,
    )


def _out_of_fold(
    detector: Detector, matrix: Floats, *, known: Flags, unsupported: Flags, sources: Sequence[str], seed: int
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
            values[held_out] = detector.fit(matrix[seen], unsupported[seen])(matrix[held_out])
    return values
