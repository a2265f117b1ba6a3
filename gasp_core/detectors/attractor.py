"""Detectors that read how the scorer's states move while the context grows (docs/evaluation.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Learner, Need, Read, Training
from gasp_core.detectors.learning import standardised_sum

if TYPE_CHECKING:  # numpy, which those who only look at names can spare
    from gasp_core.attractor.trajectory import Trajectory


def _by_trajectories(features: Callable[[Trajectory], tuple[float, ...]]) -> Read:
    """Take each sentence's features of its trajectory."""

    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        if evidence.trajectories is None:
            raise ValueError("trajectories are needed")
        found = evidence.trajectories
        return [
            FeatureVector(reason=skip) if one is None else FeatureVector(features(one))
            for skip, one in zip(found.skips, found.trajectories, strict=True)
        ]

    return read


def _movement(one: Trajectory) -> tuple[float, ...]:
    return (one.movement,)


def _convergence(one: Trajectory) -> tuple[float, ...]:
    return (one.convergence,)


def _dimension(one: Trajectory) -> tuple[float, ...]:
    """Fewer directions are more grounded: an attractor is a small set."""
    return (-one.dimension,)


def _all(one: Trajectory) -> tuple[float, ...]:
    return (*_movement(one), *_convergence(one), *_dimension(one))


ATTRACTOR_MOVEMENT = Detector("attractor-movement", Need.TRAJECTORIES, _by_trajectories(_movement))
ATTRACTOR_CONVERGENCE = Detector("attractor-convergence", Need.TRAJECTORIES, _by_trajectories(_convergence))
ATTRACTOR_DIMENSION = Detector("attractor-dimension", Need.TRAJECTORIES, _by_trajectories(_dimension))
ATTRACTOR = Detector(
    "attractor", Need.TRAJECTORIES, _by_trajectories(_all), learner=Learner(Training.SAMPLE, standardised_sum)
)
