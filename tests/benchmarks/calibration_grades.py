"""What a threshold achieves beside what was stated of it, and the table of many such grades."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.table import Table

from tests.benchmarks.calibration_traffic import Truth
from tests.benchmarks.labelled_scores import FILES
from worker.rules.calibration.recalibrate import Recalibration
from worker.rules.policy import Objective, ReviewPolicy

METHODS = ("seeded", "naive", "ours")
OBJECTIVES = (Objective.RECALL, Objective.PRECISION, Objective.COST)
# A cost within this factor of the least one that any threshold has counts as reached.
NEARLY_LEAST = 1.05


@dataclass(frozen=True, slots=True)
class Grade:
    """One threshold of one run beside the truth of its day. ``low`` and ``high`` were stated, NaN if nothing was.

    ``labels`` are the labelled sentences so far, which the seeded threshold does not use, and ``given`` what all
    reviewers answered to get them.
    """

    objective: str
    app: str
    moment: str
    method: str
    run: int
    day: int
    goal: float
    achieved: float
    low: float
    high: float
    flagged_share: float
    labels: int
    given: int
    reason: str

    @property
    def reached(self) -> bool:
        """Whether the goal is achieved."""
        if self.objective == Objective.COST:
            return self.achieved <= self.goal * NEARLY_LEAST
        return self.achieved >= self.goal

    @property
    def hit(self) -> bool:
        """Whether the goal is achieved, or lies in the stated interval."""
        return self.reached or self.low <= self.goal <= self.high

    @property
    def covered(self) -> bool:
        """Whether the stated interval holds what is achieved."""
        return self.low <= self.achieved <= self.high


def grade(truth: Truth, policy: ReviewPolicy, method: str, result: Recalibration, facts: dict[str, Any]) -> Grade:
    """The threshold that is in force after the recalibration, beside the truth."""
    low, high = (result.numbers.get(f"{policy.objective}_{end}") for end in ("low", "high"))
    return Grade(
        objective=str(policy.objective),
        app=policy.app or "",
        method=method,
        goal=truth.goal(policy),
        achieved=truth.achieved(result.flag_below, policy),
        low=math.nan if low is None else float(low),
        high=math.nan if high is None else float(high),
        flagged_share=truth.flagged_share(result.flag_below),
        reason=result.reason,
        **facts,
    )


def summary(grades: Iterable[Grade]) -> dict[str, Any]:
    """Figures by method."""
    every = list(grades)
    return {method: figures([one for one in every if one.method == method]) for method in METHODS}


def cells(grades: list[Grade]) -> Iterator[dict[str, Any]]:
    """Figures of each objective, app, moment and method."""
    for key in product(map(str, OBJECTIVES), FILES, ("first", "last"), METHODS):
        some = [one for one in grades if (one.objective, one.app, one.moment, one.method) == key]
        if some:
            yield dict(zip(("objective", "app", "moment", "method"), key, strict=True)) | figures(some)


def figures(grades: list[Grade]) -> dict[str, Any]:
    """Rates and means of some grades."""
    stated = [one for one in grades if math.isfinite(one.low) and math.isfinite(one.high)]
    return {
        "hit_rate": _mean([one.hit for one in grades]),
        "coverage": _mean([one.covered for one in grades]),
        "runs": len({one.run for one in grades}),
        "labels": round(_mean([one.labels for one in grades])),
        "reached_rate": _mean([one.reached for one in grades]),
        "labels_given_by_reviewers": round(_mean([one.given for one in grades])),
        "goal": _mean([one.goal for one in grades]),
        "achieved": _mean([one.achieved for one in grades]),
        "interval_width": _mean([one.high - one.low for one in stated]),
        "flagged_share": _mean([one.flagged_share for one in grades]),
        "grades": len(grades),
        "reasons": dict(sorted(Counter(one.reason for one in grades).items())),
    }


def _mean(values: list[Any]) -> float:
    """Rounded; 0 of nothing."""
    return round(sum(values) / len(values), 4) if values else 0.0


COLUMNS = ("goal", "achieved", "reached_rate", "hit_rate", "coverage", "interval_width", "flagged_share", "labels")


def table(rows: Iterable[dict[str, Any]]) -> Table:
    """The rows as people read them."""
    shown = Table("objective", "app", "when", "method", *(column.replace("_", " ") for column in COLUMNS))
    for row in rows:
        numbers = (str(row[column]) if column == "labels" else f"{row[column]:.3f}" for column in COLUMNS)
        shown.add_row(row["objective"], row["app"], row["moment"], row["method"], *numbers)
    return shown
