"""What a correction is learned from: sentences that people judged, with their terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worker.rules.calibration.labels import Booleans, Codes, Floats, effective_number
from worker.rules.refit.correction import TERMS, Correction


@dataclass(frozen=True, slots=True)
class TaughtSentence:
    """One sentence that people judged.

    ``score`` is what the detector gave it without any correction, ``terms`` are in the order of TERMS, empty where they
    are not known; the rest is as ``LabelledSentence`` has it. Nothing is learned from those without terms.
    """

    score: float
    terms: tuple[float, ...]
    unsupported: bool
    probability: float
    cluster: int | str
    labelled_at: float
    asked_at: float | None = None


@dataclass(frozen=True, slots=True)
class UnansweredSentence:
    """One sentence that people were asked about without a result; the score and the terms are the detector's."""

    score: float
    terms: tuple[float, ...]
    probability: float
    asked_at: float


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Sentences as columns, sorted by cluster, so that nothing depends on the order that they came in.

    ``terms`` is (n, T), the rest (n,). ``weights`` have mean 1; ``clusters`` count from 0. ``places`` are those that
    the sentences had when they came in.
    """

    scores: Floats
    terms: Floats
    unsupported: Booleans
    weights: Floats
    clusters: Codes
    labelled_at: Floats
    places: Codes

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def effective_n(self) -> float:
        """How many sentences of equal weight would tell as much (Kish)."""
        return effective_number(self.weights)

    def where(self, mask: Booleans) -> Lesson:
        """The part of it; weights, numbers of clusters and places stay as they are."""
        return Lesson(
            self.scores[mask],
            self.terms[mask],
            self.unsupported[mask],
            self.weights[mask],
            self.clusters[mask],
            self.labelled_at[mask],
            self.places[mask],
        )

    def corrected(self, correction: Correction | None) -> Floats:
        """The scores with what the correction adds; None adds nothing."""
        if correction is None:
            return self.scores
        added = np.zeros(len(self))
        for term in correction.terms:
            column = self.terms[:, TERMS.index(term.name)]
            added += term.coefficient * (column - term.mean) / term.deviation
        return np.asarray(self.scores + added, dtype=np.float64)

    def in_their_order(self, values: Floats) -> tuple[float, ...]:
        """One value per sentence, in the order that the sentences came in."""
        ordered = np.empty(len(values))
        ordered[self.places] = values
        return tuple(ordered.tolist())


def lesson_of(labels: Sequence[TaughtSentence]) -> Lesson:
    """The columns. Every number must be finite and every probability in (0, 1]."""

    def key(place: int) -> tuple[object, ...]:
        one = labels[place]
        return str(one.cluster), one.score, one.terms, one.labelled_at, one.unsupported, one.probability

    places = sorted(range(len(labels)), key=key)
    ordered = [labels[place] for place in places]
    weights = np.array([1 / one.probability for one in ordered], dtype=np.float64)
    return Lesson(
        scores=np.array([one.score for one in ordered], dtype=np.float64),
        terms=np.array([one.terms for one in ordered], dtype=np.float64).reshape(len(ordered), len(TERMS)),
        unsupported=np.array([one.unsupported for one in ordered], dtype=np.bool_),
        weights=weights / weights.mean() if len(weights) else weights,
        clusters=np.unique([str(one.cluster) for one in ordered], return_inverse=True)[1],
        labelled_at=np.array([one.labelled_at for one in ordered], dtype=np.float64),
        places=np.array(places, dtype=np.intp),
    )
