"""What calibration starts from: labelled sentences with their selection probability, and unlabelled scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """One sentence that people judged.

    ``score`` of the detector, ``probability`` in (0, 1] of having been asked, ``cluster`` the interaction it is of,
    ``labelled_at`` and ``asked_at`` in seconds since any one moment; None if it was asked about when it was labelled.
    Partly supported counts as unsupported, and what is no claim as supported: a flag on it is a wasted review.
    """

    score: float
    unsupported: bool
    probability: float
    cluster: int | str
    labelled_at: float
    asked_at: float | None = None

    @property
    def time(self) -> float:
        """When the app said it, as nearly as is known: people read in an order of their own."""
        return self.labelled_at if self.asked_at is None else self.asked_at


@dataclass(frozen=True, slots=True)
class Unanswered:
    """One sentence that people were asked about and did not judge, or not to any result; as ``LabelledSentence``."""

    score: float
    probability: float
    asked_at: float


@dataclass(frozen=True, slots=True, eq=False)
class Silent:
    """Sentences asked about of a kind that nobody answers: no label can stand for them.

    ``weights`` are in the unit of those of the sample that they belong to.
    """

    scores: Floats
    weights: Floats

    def __len__(self) -> int:
        return len(self.scores)


NONE_SILENT = Silent(np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class Population:
    """The app's traffic, unlabelled: all scores of its sentences or a random sample of them.

    ``lowest`` has the lowest score of each answer.
    """

    scores: Floats
    lowest: Floats
    sentences_a_day: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Labelled sentences as columns, sorted by cluster. ``weights`` have mean 1; ``clusters`` count from 0."""

    scores: Floats
    unsupported: Booleans
    weights: Floats
    clusters: Codes
    times: Floats
    names: tuple[int | str, ...]
    silent: Silent = NONE_SILENT

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def effective_n(self) -> float:
        """How many sentences of equal weight would tell as much (Kish)."""
        return effective_number(self.weights)

    def where(self, mask: Booleans) -> Sample:
        """The part of it; weights and names of clusters stay as they are. Of what is silent it has its share."""
        part = float(self.weights[mask].sum() / self.weights.sum()) if len(self) else 0.0
        return Sample(
            self.scores[mask],
            self.unsupported[mask],
            self.weights[mask],
            np.unique(self.clusters[mask], return_inverse=True)[1],
            self.times[mask],
            tuple(name for name, kept in zip(self.names, mask, strict=True) if kept),
            Silent(self.silent.scores, self.silent.weights * part),
        )


def effective_number(weights: Floats) -> float:
    """How many things of equal weight would tell as much as those of these weights (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def sample_of(labelled: Sequence[LabelledSentence]) -> Sample:
    """The columns, in an order that does not depend on that of ``labelled``."""
    ordered = sorted(labelled, key=lambda one: (str(one.cluster), one.score, one.labelled_at, one.unsupported))
    weights = np.array([1 / one.probability for one in ordered], dtype=np.float64)
    return Sample(
        np.array([one.score for one in ordered], dtype=np.float64),
        np.array([one.unsupported for one in ordered], dtype=np.bool_),
        weights / weights.mean() if len(weights) else weights,
        np.unique([str(one.cluster) for one in ordered], return_inverse=True)[1],
        np.array([one.time for one in ordered], dtype=np.float64),
        tuple(one.cluster for one in ordered),
    )
