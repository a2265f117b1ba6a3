"""The path of a sentence through the scorer's states while its context grows, and what is measured of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gasp_core.arrays import Floats
from gasp_core.grounding import Sentence, SentenceSkip


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The mean state of a sentence without context, with the first chunks, and so on to the whole context: k steps.

    ``products`` (k, k), k at least 1, are the inner products of the steps, in order, and ``norm`` (above 0) is the
    length of the last state. They are finite. Nothing that is measured here depends on more of the states than that.
    """

    norm: float
    products: Floats

    @property
    def movement(self) -> float:
        """The length of the path as a share of that of the last state, at least 0."""
        return float(self._lengths.sum()) / self.norm

    @property
    def convergence(self) -> float:
        """How much shorter the last step is than the first: (first − last) / (first + last), in [−1, 1].

        1 if the path ends where it led first, 0 if both steps are alike, as they are where there is only one or none.
        """
        first, last = float(self._lengths[0]), float(self._lengths[-1])
        return (first - last) / (first + last) if first + last > 0 else 0.0

    @property
    def dimension(self) -> float:
        """In how many directions the steps lead: the participation ratio of their inner products, in [1, k].

        1 for a straight line, k for steps of one length at right angles; 0 for a path that does not move.
        """
        # Scaled, so that the squares of small steps are not lost.
        total = float(np.trace(self.products))
        return 1 / float(((self.products / total) ** 2).sum()) if total > 0 else 0.0

    @property
    def _lengths(self) -> Floats:
        """The length of each step, (k,)."""
        lengths: Floats = np.sqrt(np.diag(self.products))
        return lengths


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTrajectories:
    """The trajectory of each sentence of an answer, or None and in ``skips`` the reason."""

    sentences: tuple[Sentence, ...]
    skips: tuple[SentenceSkip | None, ...]
    trajectories: tuple[Trajectory | None, ...]
