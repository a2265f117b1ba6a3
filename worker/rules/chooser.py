"""Chooses what people are asked about among the answers of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from worker.rules.allowance import Allowance
from worker.rules.selection import select
from worker.rules.verdict import Verdict


class Chooser:
    """Lives for a batch: what it issues counts for the answers that follow.

    ``uniform`` gives a number in [0, 1) that nobody can foresee; it is drawn once per answer.
    """

    def __init__(self, allowances: Mapping[str, Allowance], uniform: Callable[[], float]) -> None:
        self._allowances = dict(allowances)
        self._uniform = uniform

    def chosen(self, app: str, verdict: Verdict) -> Verdict:
        """The verdict with its selection, if people are to be asked. Raises KeyError for an app without allowance."""
        allowance = self._allowances[app]
        selection = select(verdict.scores, verdict.threshold.flag_below, allowance.budget, self._uniform())
        if selection is None:
            return verdict
        self._allowances[app] = allowance.after(selection)
        return replace(verdict, selection=selection, reviewers=allowance.policy.reviewers)
