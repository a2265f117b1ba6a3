"""Recalibration: from the labels of each app and scorer to a new threshold version, or to the reason for none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from worker.errors import Stopped
from worker.jobs.each_app import each_app
from worker.jobs.hold import is_held
from worker.rules.calibration.labels import LabelledSentence
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Recalibration, recalibrate
from worker.rules.policy import ReviewPolicy
from worker.rules.verdict import Threshold, threshold_for
from worker.store.calibration_runs import OVERTAKEN, CalibrationRun, CalibrationRuns
from worker.store.evidence import Evidence
from worker.store.interactions import Interactions
from worker.store.policies import ReviewPolicies
from worker.store.scorers import Scorers
from worker.store.store import Store
from worker.store.threshold_versions import Proposal, Version
from worker.store.thresholds import Thresholds

SCHEDULE = "schedule"
COMMAND = "command"
SET_BY_HAND = "set_by_hand"

log = structlog.get_logger(__name__)

_Labels = Sequence[tuple[str, LabelledSentence]]


@dataclass(frozen=True, slots=True)
class AppRecalibration:
    """The outcome for one app (None: all without their own) under one scorer; ``added`` is the version in force now.

    Without ``added`` nothing has changed, in a dry run whatever the outcome.
    """

    app: str | None
    scorer_id: int
    in_force: Threshold
    policy: ReviewPolicy
    result: Recalibration
    added: Version | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibrator:
    """Learns the thresholds of apps and scorers from their labels."""

    scorers: Scorers
    evidence: Evidence
    thresholds: Thresholds
    policies: ReviewPolicies
    interactions: Interactions
    runs: CalibrationRuns

    @classmethod
    def of(cls, store: Store) -> Recalibrator:
        """With all that it takes of the store."""
        return cls(
            scorers=store.scorers,
            evidence=store.evidence,
            thresholds=store.thresholds,
            policies=store.policies,
            interactions=store.interactions,
            runs=store.calibration_runs,
        )

    def recalibrations(
        self, stop: threading.Event, *, trigger: str, app: str | None = None, dry_run: bool = False
    ) -> Iterator[AppRecalibration]:
        """Recalibrate each scorer that is at work, for each app with labels and last the default, or for ``app`` only.

        Each finding is booked in a transaction of its own before it is given, unless it is a dry run. Raises Stopped
        between two of them if a stop was asked for, and StoreError; and WorkerError at the end if one of them failed.
        """
        subjects = self._subjects(stop, trigger, app, dry_run=dry_run)
        yield from each_app("recalibrate", subjects)

    def _subjects(
        self, stop: threading.Event, trigger: str, app: str | None, *, dry_run: bool
    ) -> Iterator[tuple[str | None, Callable[[], AppRecalibration]]]:
        for scorer_id in self.scorers.at_work():
            labels = self.evidence.labelled_sentences(scorer_id)
            labelled: list[str | None] = [*sorted({name for name, _ in labels}), *([None] if labels else [])]
            for subject in labelled if app is None else [one for one in labelled if one == app]:
                if stop.is_set():
                    raise Stopped("recalibrate")
                yield subject, partial(self._recalibrate, subject, scorer_id, labels, trigger, dry_run=dry_run)

    def _recalibrate(
        self, app: str | None, scorer_id: int, labels: _Labels, trigger: str, *, dry_run: bool
    ) -> AppRecalibration:
        finding = self._find(app, scorer_id, labels, trigger)
        return finding if dry_run else self._book(finding, trigger)

    def _find(self, app: str | None, scorer_id: int, labels: _Labels, trigger: str) -> AppRecalibration:
        """Read what is in force anew: the versions of other apps may have changed since the labels were read."""
        in_force = self.thresholds.in_force(scorer_id, [] if app is None else [app])
        present = in_force[None] if app is None else threshold_for(app, in_force)
        policy = self.policies.in_force(app)
        if trigger == SCHEDULE and is_held(self.thresholds.last_activation(app, scorer_id)):
            held = Recalibration(
                CalibrationOutcome.REFUSED, SET_BY_HAND, present.flag_below, present.attribute_below, None, {"app": app}
            )
            return AppRecalibration(app, scorer_id, present, policy, held)
        apps = self.interactions.apps() if app is None else [app]
        reference = self.evidence.population(apps, scorer_id, until=present.activated_at).scores
        result = recalibrate(
            app,
            [label for name, label in labels if app in {None, name}],
            [label for _, label in labels],
            self.evidence.population(apps, scorer_id),
            reference if len(reference) else None,
            policy,
            InForce(present.flag_below, present.attribute_below, present.curve),
        )
        return AppRecalibration(app, scorer_id, present, policy, result)

    def _book(self, finding: AppRecalibration, trigger: str) -> AppRecalibration:
        result = finding.result
        run = CalibrationRun(
            app=finding.app,
            scorer_id=finding.scorer_id,
            trigger=trigger,
            outcome=result.outcome,
            reason=result.reason,
            in_force_id=finding.in_force.id,
            numbers=result.numbers,
        )
        added = self.runs.book(run, _proposal(finding) if result.outcome is CalibrationOutcome.NEW else None)
        if result.outcome is CalibrationOutcome.NEW and added is None:
            result = replace(result, outcome=CalibrationOutcome.REFUSED, reason=OVERTAKEN)
        log.info(
            "recalibrated",
            app=finding.app,
            scorer_id=finding.scorer_id,
            outcome=result.outcome,
            reason=result.reason,
            in_force=finding.in_force.name,
            added=None if added is None else added.name,
            numbers=result.numbers,
        )
        return replace(finding, result=result, added=added)


def _proposal(finding: AppRecalibration) -> Proposal:
    result, policy = finding.result, finding.policy
    return Proposal(
        app=finding.app,
        scorer_id=finding.scorer_id,
        flag_below=result.flag_below,
        attribute_below=result.attribute_below,
        learned_from="calibrated",
        note=f"{result.numbers.get('n_labels')} labels, for {policy.objective} {policy.target:g}",
        curve=result.curve,
    )
