"""The traffic of the calibration benchmark: scored answers with human labels, and what is true of them on a day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.labelled_scores import FILES, scored_answers
from worker.rules.calibration.labels import Booleans, Codes, Floats
from worker.rules.policy import Objective, ReviewPolicy

SHIFT_DAY = 180
# Of the answers, those with an unsupported sentence: before and after the shift.
BAD_ANSWERS = {"ragtruth_qa_dev": (0.35, 0.55), "lfqa_dev": (0.7, 0.4)}


@dataclass(frozen=True, slots=True)
class Truth:
    """All the traffic of a day; the chances of its sentences sum to 1."""

    gaps: Floats
    unsupported: Booleans
    chances: Floats

    def achieved(self, flag_below: float, policy: ReviewPolicy) -> float:
        """What flagging below it achieves: a recall, a precision, or a cost a sentence."""
        flagged = self.gaps < flag_below
        hits = float(self.chances @ (flagged & self.unsupported))
        unsupported, flags = float(self.chances @ self.unsupported), self.flagged_share(flag_below)
        if policy.objective is Objective.RECALL:
            return hits / unsupported
        if policy.objective is Objective.PRECISION:
            return hits / flags if flags else 0.0
        return policy.target * (unsupported - hits) + flags

    def goal(self, policy: ReviewPolicy) -> float:
        """What is to be reached: the target, or the least cost that any threshold has."""
        if policy.objective is not Objective.COST:
            return policy.target
        return min(self.achieved(bound, policy) for bound in np.quantile(self.gaps, np.linspace(0, 1, 201)).tolist())

    def flagged_share(self, flag_below: float) -> float:
        """Of all sentences."""
        return float(self.chances @ (self.gaps < flag_below))


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one file, flat: sentences of answer i at ``starts[i]:starts[i + 1]``."""

    name: str
    gaps: Floats
    unsupported: Booleans
    starts: Codes

    def chances(self, day: int) -> Floats:
        """How likely each answer is to be the next one on that day."""
        share = BAD_ANSWERS[self.name][day >= SHIFT_DAY]
        bad = np.logical_or.reduceat(self.unsupported, self.starts[:-1])
        return np.asarray(np.where(bad, share / bad.sum(), (1 - share) / (~bad).sum()), dtype=np.float64)

    def truth(self, day: int) -> Truth:
        """What no method sees."""
        chances = np.repeat(self.chances(day), np.diff(self.starts))
        return Truth(self.gaps, self.unsupported, chances / chances.sum())


def read(folder: Path, name: str) -> Answers:
    """The scored answers of one file."""
    rows: list[list[dict[str, Any]]] = [row["sentences"] for row in scored_answers(folder / f"{name}.jsonl")]
    return answers_of(name, [([one["gap"] for one in row], [one["unsupported"] for one in row]) for row in rows if row])


def made_up(name: str) -> Answers:
    """Answers a little like those of the file, made up."""
    rng = np.random.default_rng(7)
    count, length, prior, apart = (588, 9, 0.15, 0.35) if name == FILES[0] else (240, 7, 0.22, 0.8)
    rows = []
    for _ in range(count):
        bad = rng.random(1 + rng.poisson(length - 1)) < prior * 2 * (rng.random() < 0.5)
        gaps = 0.1 + rng.normal(0, 0.15) + rng.gamma(2, 0.25, len(bad)) - apart * bad
        rows.append((gaps.tolist(), bad.tolist()))
    return answers_of(name, rows)


def answers_of(name: str, rows: list[tuple[list[float], list[bool]]]) -> Answers:
    """The rows, flat."""
    gaps = np.array([gap for row in rows for gap in row[0]])
    unsupported = np.array([bad for row in rows for bad in row[1]])
    return Answers(name, gaps, unsupported, np.cumsum([0, *(len(row[0]) for row in rows)]))
