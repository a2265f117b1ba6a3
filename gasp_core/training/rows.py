"""What a readout is learned from: a row per labelled sentence, with its terms, the model's states and its label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.detectors.readout.terms import sentence_terms
from gasp_core.errors import InputError
from gasp_core.evaluation.data import LabelledAnswer
from gasp_core.evaluation.labels import sentence_labels

# A sentence that was hardly ever asked about would otherwise speak for all others: no weight is more times the mean.
MAX_WEIGHT = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sentences of one or more sets.

    ``terms`` (n, T), ``states`` (n, D) are the means of the states after one layer, ``unsupported`` (n,) the labels,
    ``sets`` (n,) and ``sources`` (n,) number the set and the source that a sentence is from; a source has one number
    in all sets that have it, and is never cut in two. ``weights`` (n,) have the mean 1 in each set.
    """

    terms: Floats
    states: NDArray[np.float32]
    unsupported: Flags
    sets: NDArray[np.int64]
    sources: NDArray[np.int64]
    weights: Floats

    def __len__(self) -> int:
        return len(self.unsupported)

    def where(self, chosen: Flags) -> Rows:
        """Those rows alone."""
        return Rows(
            self.terms[chosen],
            self.states[chosen],
            self.unsupported[chosen],
            self.sets[chosen],
            self.sources[chosen],
            self.weights[chosen],
        )


def labelled_rows(sets: Sequence[Iterable[tuple[LabelledAnswer, AnswerEvidence]]], names: Sequence[str]) -> Rows:
    """The labelled sentences of all sets that have a score, in order; ``names`` are those of the sets.

    Raises InputError if there is none.
    """
    found = [(number, row) for number, answers in enumerate(sets) for row in _rows(answers)]
    if not found:
        raise InputError(", ".join(names), 0, "no sentence has both a label and a score")
    numbers: dict[str, int] = {}
    of_set = np.array([number for number, _ in found])
    return Rows(
        terms=np.array([row.terms for _, row in found]),
        states=np.array([row.states for _, row in found], dtype=np.float32),
        unsupported=np.array([row.unsupported for _, row in found]),
        sets=of_set,
        sources=np.array([numbers.setdefault(row.source, len(numbers)) for _, row in found]),
        weights=_levelled(np.array([row.weight for _, row in found]), of_set),
    )


def _levelled(weights: Floats, sets: NDArray[np.int64]) -> Floats:
    """Weights of the mean 1 in each set, the largest cut."""
    level = weights.astype(np.float64)
    for number in np.unique(sets):
        there = sets == number
        level[there] = np.minimum(level[there] / level[there].mean(), MAX_WEIGHT)
        level[there] /= level[there].mean()
    return level


@dataclass(frozen=True, slots=True)
class _Row:
    source: str
    terms: tuple[float, ...]
    states: NDArray[np.float32]
    unsupported: bool
    weight: float


def _rows(answers: Iterable[tuple[LabelledAnswer, AnswerEvidence]]) -> Iterator[_Row]:
    for answer, evidence in answers:
        if evidence.two_pass is None:
            raise ValueError("two passes are needed")
        terms = sentence_terms(answer.exchange, evidence.two_pass)
        labels = sentence_labels(answer, evidence.sentences)
        for sentence, numbers, label in zip(evidence.two_pass.sentences, terms, labels, strict=True):
            if numbers is not None and label.unsupported is not None:
                states = np.array(sentence.readings, dtype=np.float32)
                yield _Row(answer.source, numbers, states, label.unsupported, label.weight)
