"""What an app wants from its reviews: how many, for which objective, by how many people. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import count


class Objective(StrEnum):
    """What the threshold for flagging is chosen for; what ``target`` means beside it."""

    RECALL = "recall"  # the share of unsupported sentences that is flagged; target in (0, 1)
    PRECISION = "precision"  # the share of flagged sentences that is unsupported; target in (0, 1)
    COST = "cost"  # the least cost; target is the price of a miss, in reviews of a flagged sentence
    BUDGET = "budget"  # as low a threshold as it takes; target is flagged sentences a day


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """The policy of one app (None: of every app without its own).

    ``daily_sentences`` are asked about on a UTC day at most, ``sampled_share`` of them from the unflagged ones.
    ``attribution_share`` of the answers, the lowest scoring, may be attributed. ``reviewers`` people read each
    sentence, and one more where they differ. ``flag_share`` of the app's sentences, the lowest scoring, are flagged
    until its threshold can be learned from labels. Raises ValueError with the field and its bounds.
    """

    app: str | None
    daily_sentences: int
    sampled_share: float
    objective: Objective
    target: float
    attribution_share: float
    reviewers: int
    flag_share: float

    def __post_init__(self) -> None:
        require(self.daily_sentences >= 0, f"daily_sentences is 0 or more, not {self.daily_sentences}")
        require(0 <= self.sampled_share <= 1, f"sampled_share lies in [0, 1], not {self.sampled_share}")
        require(0 <= self.attribution_share <= 1, f"attribution_share lies in [0, 1], not {self.attribution_share}")
        require(self.reviewers >= 1, f"reviewers is 1 or more, not {self.reviewers}")
        require(0 < self.flag_share < 1, f"flag_share lies in (0, 1), not {self.flag_share}")
        if self.objective in {Objective.RECALL, Objective.PRECISION}:
            require(0 < self.target < 1, f"the target of {self.objective} lies in (0, 1), not {self.target}")
        else:
            require(0 < self.target < math.inf, f"the target of {self.objective} is above 0, not {self.target}")

    @property
    def sampled_budget(self) -> int:
        """Unflagged sentences to ask about on a day."""
        return round(self.daily_sentences * self.sampled_share)

    @property
    def flagged_budget(self) -> int:
        """Flagged sentences to ask about on a day."""
        return self.daily_sentences - self.sampled_budget

    @property
    def breaks(self) -> str | None:
        """What labels under this policy can never tell, in a sentence; None if nothing is broken."""
        if self.sampled_budget and self.flagged_budget:
            return None
        if not self.daily_sentences:
            return "nobody is asked about anything, so no labels come: the threshold follows the traffic"
        kind, word = ("flagged", "too_few_flagged") if self.sampled_budget else ("unflagged", "too_few_unflagged")
        unseen = "what the flags are worth" if self.sampled_budget else "what the threshold misses"
        return (
            f"none of the {self.daily_sentences} sentences a day is {kind}: nobody sees {unseen}, recall and the share "
            f"of what is unsupported cannot be known, and recalibration refuses such labels ({word}); "
            f"{self._remedy} asks about both kinds"
        )

    @property
    def _remedy(self) -> str:
        """The nearest policy that asks about both kinds of sentences, as options."""
        if self.daily_sentences > 1:
            least = 1 / self.daily_sentences
            return f"--sampled-share {min(max(self.sampled_share, least), 1 - least):.6g}"
        share = self.sampled_share if 0.01 <= self.sampled_share <= 0.99 else DEFAULT_POLICY.sampled_share
        daily = next(n for n in count(2) if 0 < round(n * share) < n)
        return f"--daily-sentences {daily} --sampled-share {share:g}"


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise ValueError with the message unless it holds; NaN holds nowhere."""
    if not holds:
        raise ValueError(otherwise)


DEFAULT_POLICY = ReviewPolicy(
    app=None,
    daily_sentences=50,
    sampled_share=0.4,
    objective=Objective.RECALL,
    target=0.8,
    attribution_share=0.2,
    reviewers=1,
    flag_share=0.15,
)
