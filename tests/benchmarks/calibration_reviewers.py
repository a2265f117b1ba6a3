"""Habits of reviewers in the calibration benchmark: what they read of what they are asked, in which order, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

WEEK = 7
HALF_YEAR = 180
WRONG = 0.03


@dataclass(frozen=True, slots=True)
class Question:
    """A sentence that people are asked about. ``lowest`` is the lowest score that its task asks about."""

    day: int
    score: float
    unsupported: bool
    probability: float
    cluster: str
    lowest: float


@dataclass(frozen=True, slots=True)
class Habit:
    """Every ``days`` days what was asked since is put in order, and the first ``part`` of it is read.

    A reader is wrong in ``wrong`` of a hundred at first and in ``tired`` at the end of a sitting. On one day in
    ``burst_every`` (0: never) there is 15 times the traffic.
    """

    days: int
    part: float
    key: Callable[[Question, np.random.Generator], float]
    wrong: float = WRONG
    tired: float = WRONG
    burst_every: int = 0

    def read(self, asked: Sequence[Question], rng: np.random.Generator) -> list[tuple[Question, float]]:
        """What is read, one after the other, and how likely each reader is wrong about it."""
        keys = [self.key(one, rng) for one in asked]
        ordered = [asked[place] for place in np.argsort(keys, kind="stable")]
        count = round(self.part * len(ordered))
        chances = np.linspace(self.wrong, self.tired, max(count, 1))
        return list(zip(ordered[:count], chances.tolist(), strict=False))


def _by_chance(_: Question, rng: np.random.Generator) -> float:
    return float(rng.random())


def _lowest_first(one: Question, _: np.random.Generator) -> float:
    return one.lowest


HABITS = {
    "random": Habit(WEEK, 0.7, _by_chance),
    "lowest_first_60": Habit(WEEK, 0.6, _lowest_first),
    "lowest_first_80": Habit(WEEK, 0.8, _lowest_first),
    "one_sitting": Habit(HALF_YEAR, 1.0, _lowest_first),
    "bursts": Habit(1, 1.0, _by_chance, burst_every=5),
    "tired": Habit(WEEK, 1.0, _by_chance, wrong=0.01, tired=0.1),
}
BURST = 15
