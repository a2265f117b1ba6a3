"""Chooses what people are asked about among the answers of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from worker.rules.allowance import Allowance, CommonAllowance
from worker.rules.selection import select
from worker.rules.verdict import Verdict


class Chooser:
    """Lives for a batch: what it issues counts for the answers that follow.

    ``uniform`` gives a number in [0, 1) that nobody can foresee; it is drawn once per answer. ``common`` bounds the
    apps whose policy is that of all (None: nothing does).
    """

    def __init__(
        self,
        allowances: Mapping[str, Allowance],
        uniform: Callable[[], float],
        common: CommonAllowance | None = None,
    ) -> None:
        self._common = common
        self._allowances = dict(allowances)
        self._uniform = uniform

    def chosen(self, app: str, verdict: Verdict) -> Verdict:
        """The verdict with its selection, if people are to be asked. Raises KeyError for an app without allowance."""
        allowance = self._allowances[app]
        common = self._common if allowance.policy.app is None else None
        budget = allowance.budget if common is None else common.within(allowance.budget)
        selection = select(verdict.scores, verdict.threshold.flag_below, budget, self._uniform())
        if selection is None:
            return verdict
        self._allowances[app] = allowance.after(selection)
        if common is not None:
            self._common = common.after(selection)
        return replace(verdict, selection=selection, reviewers=allowance.policy.reviewers)
