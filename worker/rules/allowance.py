"""What an app may still ask people about today. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from worker.rules.policy import ReviewPolicy
from worker.rules.selection import Reason, SamplingBudget, Selection, share_of

# How many times the budget of one of them all apps without a policy of their own have together.
COMMON_BUDGETS = 10


@dataclass(frozen=True, slots=True)
class UsualDay:
    """An app's traffic: the sums of ``expected_weights`` over a day, and the spread of its scores, above 0."""

    flagged: float
    sampled: float
    spread: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """The app's policy, its traffic (None: not known yet), and how many sentences were issued this UTC day."""

    policy: ReviewPolicy
    usual: UsualDay | None = None
    flagged_issued: int = 0
    sampled_issued: int = 0

    @property
    def budget(self) -> SamplingBudget:
        """How fast what is left of the day's budget may be spent."""
        budget = SamplingBudget(
            flagged_budget=self.policy.flagged_budget,
            flagged_issued=self.flagged_issued,
            expected_flagged=None,
            sampled_budget=self.policy.sampled_budget,
            sampled_issued=self.sampled_issued,
            expected_sampled=None,
        )
        if self.usual is None:
            return budget
        return replace(
            budget,
            expected_flagged=self.usual.flagged,
            expected_sampled=self.usual.sampled,
            spread=self.usual.spread,
        )

    def after(self, selection: Selection) -> Allowance:
        """What is left once these sentences are issued."""
        issued = Counter(one.reason for one in selection.sentences)
        return replace(
            self,
            flagged_issued=self.flagged_issued + issued[Reason.FLAGGED],
            sampled_issued=self.sampled_issued + issued[Reason.SAMPLED],
        )


@dataclass(frozen=True, slots=True)
class CommonAllowance:
    """What all apps without a policy of their own may ask about today, together.

    An app is what a message says: without this, a flood of new names would be asked about with a budget each.
    ``policy`` is that of each of them, and the numbers are what all of them have issued this UTC day.
    """

    policy: ReviewPolicy
    flagged_issued: int = 0
    sampled_issued: int = 0

    def within(self, budget: SamplingBudget) -> SamplingBudget:
        """An app's own budget, with its share in this one."""
        return replace(
            budget,
            flagged_share=share_of(COMMON_BUDGETS * self.policy.flagged_budget, self.flagged_issued),
            sampled_share=share_of(COMMON_BUDGETS * self.policy.sampled_budget, self.sampled_issued),
        )

    def after(self, selection: Selection) -> CommonAllowance:
        """What is left once these sentences are issued."""
        issued = Counter(one.reason for one in selection.sentences)
        return replace(
            self,
            flagged_issued=self.flagged_issued + issued[Reason.FLAGGED],
            sampled_issued=self.sampled_issued + issued[Reason.SAMPLED],
        )
