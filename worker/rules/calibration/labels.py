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
    ``labelled_at`` in seconds since any one moment. Partly supported counts as unsupported, and what is no claim as
    supported: a flag on it is a wasted review.
    """

    score: float
    unsupported: bool
    probability: float
    cluster: int | str
    labelled_at: float


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
    labelled_at: Floats
    names: tuple[int | str, ...]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def effective_n(self) -> float:
        """How many sentences of equal weight would tell as much (Kish)."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum()) if len(self) else 0.0

    def where(self, mask: Booleans) -> Sample:
        """The part of it; weights and names of clusters stay as they are."""
        return Sample(
            self.scores[mask],
            self.unsupported[mask],
            self.weights[mask],
            np.unique(self.clusters[mask], return_inverse=True)[1],
            self.labelled_at[mask],
            tuple(name for name, kept in zip(self.names, mask, strict=True) if kept),
        )


def sample_of(labelled: Sequence[LabelledSentence]) -> Sample:
    """The columns, in an order that does not depend on that of ``labelled``."""
    ordered = sorted(labelled, key=lambda one: (str(one.cluster), one.score, one.labelled_at, one.unsupported))
    weights = np.array([1 / one.probability for one in ordered], dtype=np.float64)
    return Sample(
        np.array([one.score for one in ordered], dtype=np.float64),
        np.array([one.unsupported for one in ordered], dtype=np.bool_),
        weights / weights.mean() if len(weights) else weights,
        np.unique([str(one.cluster) for one in ordered], return_inverse=True)[1],
        np.array([one.labelled_at for one in ordered], dtype=np.float64),
        tuple(one.cluster for one in ordered),
    )
