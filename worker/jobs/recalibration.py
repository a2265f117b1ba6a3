"""Recalibration: from the labels of each app and scorer to a new threshold version, or to the reason for none.

First it is asked whether the labels teach a correction of the detector's scores, or another one than is in force; then
the bounds are learned for the scores as they are from then on. Both are one version.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from worker.errors import Stopped
from worker.jobs.each_app import each_app
from worker.jobs.hold import is_held
from worker.rules.calibration.labels import LabelledSentence, Unanswered
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Numbers, Recalibration, recalibrate
from worker.rules.policy import ReviewPolicy
from worker.rules.refit.correction import Correction
from worker.rules.refit.lesson import TaughtSentence, UnansweredSentence
from worker.rules.refit.refit import Refit, RefitOutcome, Taught, refit
from worker.rules.scale import carried_over, labelled, labelled_under, unanswered_under
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

# What of the evidence makes it no evidence: then nothing is put in force, whatever the labels teach.
_UNUSABLE = {"not_finite", "bad_probability", "no_traffic", "no_spread", "too_few_unflagged", "too_few_flagged"}


@dataclass(frozen=True, slots=True)
class AppRecalibration:
    """The outcome for one app (None: all without their own) under one scorer; ``added`` is the version in force now.

    ``correction`` is what the bounds of ``result`` are meant for, ``refit`` how it was arrived at, None if that was not
    asked. Without ``added`` nothing has changed, in a dry run whatever the outcome.
    """

    app: str | None
    scorer_id: int
    in_force: Threshold
    policy: ReviewPolicy
    result: Recalibration
    correction: Correction | None = None
    refit: Refit | None = None
    added: Version | None = None


@dataclass(frozen=True, slots=True)
class _Reviews:
    """What people were asked about under one scorer, with its app: what they said, and what they did not answer."""

    labels: Sequence[tuple[str, TaughtSentence]]
    unanswered: Sequence[tuple[str, UnansweredSentence]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The same of one app as it is scored from now on; ``pooled`` are the labels of all apps."""

    labelled: Sequence[LabelledSentence]
    pooled: Sequence[LabelledSentence]
    unanswered: Sequence[Unanswered]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibrator:
    """Learns the corrections and thresholds of apps and scorers from their labels."""

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
            reviews = _Reviews(labels, self.evidence.unanswered_sentences(scorer_id) if labels else [])
            labelled: list[str | None] = [*sorted({name for name, _ in labels}), *([None] if labels else [])]
            for subject in labelled if app is None else [one for one in labelled if one == app]:
                if stop.is_set():
                    raise Stopped("recalibrate")
                yield subject, partial(self._recalibrate, subject, scorer_id, reviews, trigger, dry_run=dry_run)

    def _recalibrate(
        self, app: str | None, scorer_id: int, reviews: _Reviews, trigger: str, *, dry_run: bool
    ) -> AppRecalibration:
        finding = self._find(app, scorer_id, reviews, trigger)
        return finding if dry_run else self._book(finding, trigger)

    def _find(self, app: str | None, scorer_id: int, reviews: _Reviews, trigger: str) -> AppRecalibration:
        """Read what is in force anew: the versions of other apps may have changed since the labels were read."""
        in_force = self.thresholds.in_force(scorer_id, [] if app is None else [app])
        present = in_force[None] if app is None else threshold_for(app, in_force)
        policy = self.policies.in_force(app)
        if trigger == SCHEDULE and is_held(self.thresholds.last_activation(app, scorer_id)):
            held = Recalibration(
                CalibrationOutcome.REFUSED, SET_BY_HAND, present.flag_below, present.attribute_below, None, {"app": app}
            )
            return AppRecalibration(app, scorer_id, present, policy, held, present.correction)
        own = [label for name, label in reviews.labels if app in {None, name}]
        learned = refit([label for label in own if label.terms], self._taught(app, present))
        asked = _Asked(
            _unseen(own, learned),
            labelled_under((label for _, label in reviews.labels), learned.correction),
            unanswered_under((one for name, one in reviews.unanswered if app in {None, name}), learned.correction),
        )
        result = self._bounds(app, scorer_id, present, policy, asked, learned)
        if _is_other(learned) and result.reason not in _UNUSABLE:
            result = _promoted(result, learned)
        result = replace(result, numbers=result.numbers | _figures(learned))
        kept = learned.correction if result.outcome is CalibrationOutcome.NEW else present.correction
        return AppRecalibration(app, scorer_id, present, policy, result, kept, learned)

    def _taught(self, app: str | None, present: Threshold) -> Taught | None:
        """The correction in force, and until when it may have seen labels of the app, if it is the app's own.

        One that all apps taught has seen some, too, among those of others. It is judged as it is all the same: what is
        learned anew from the app's own labels would be another one.
        """
        if present.correction is None:
            return None
        same = (version for version in self.thresholds.versions() if version.correction == present.correction)
        first = min(same, key=lambda version: version.id)
        return Taught(present.correction, present.correction.learned_until if first.app == app else -math.inf)

    def _bounds(
        self,
        app: str | None,
        scorer_id: int,
        present: Threshold,
        policy: ReviewPolicy,
        asked: _Asked,
        learned: Refit,
    ) -> Recalibration:
        """Bounds for the scores as they are corrected from now on.

        If they are corrected otherwise than before, those in force are first carried over to the new scores.
        """
        apps = self.interactions.apps() if app is None else [app]
        traffic = partial(self.evidence.population, apps, scorer_id)
        population = traffic(correction=learned.correction)
        reference = traffic(correction=learned.correction, until=present.activated_at).scores
        in_force = InForce(present.flag_below, present.attribute_below, present.curve)
        if _is_other(learned) and len(population.scores):
            in_force = carried_over(in_force, traffic(correction=present.correction), population)
        earlier = reference if len(reference) else None
        return recalibrate(app, asked.labelled, asked.pooled, population, earlier, policy, in_force, asked.unanswered)

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


def _unseen(own: Sequence[TaughtSentence], learned: Refit) -> list[LabelledSentence]:
    """The labels with scores by what was learned without them. Those without terms have none under a correction."""
    read = (label for label in own if label.terms)
    unseen = [labelled(label, score) for label, score in zip(read, learned.scores, strict=True)]
    return [*unseen, *labelled_under((label for label in own if not label.terms), learned.correction)]


def _is_other(learned: Refit) -> bool:
    return learned.outcome in {RefitOutcome.NEW, RefitOutcome.WITHDRAWN}


def _promoted(result: Recalibration, learned: Refit) -> Recalibration:
    """Another correction is worth a version, whatever came of the bounds: kept, they flag the same share as before."""
    numbers = result.numbers | {"bounds": f"{result.outcome} ({result.reason})"}
    return replace(result, outcome=CalibrationOutcome.NEW, reason=learned.reason, numbers=numbers)


def _figures(learned: Refit) -> Numbers:
    """What came of the refit, beside what came of the bounds."""
    return {"refit": learned.reason} | {f"refit_{name}": value for name, value in learned.numbers.items()}


def _proposal(finding: AppRecalibration) -> Proposal:
    result = finding.result
    return Proposal(
        app=finding.app,
        scorer_id=finding.scorer_id,
        flag_below=result.flag_below,
        attribute_below=result.attribute_below,
        learned_from="calibrated",
        note=_note(finding),
        curve=result.curve,
        correction=finding.correction,
    )


def _note(finding: AppRecalibration) -> str:
    result, policy, learned = finding.result, finding.policy, finding.refit
    labels = f"{result.numbers.get('n_labels')} labels, for {policy.objective} {policy.target:g}"
    if learned is None or not _is_other(learned):
        return labels
    found = learned.numbers
    if learned.outcome is RefitOutcome.WITHDRAWN:
        loss = f"AUC {found['auc_champion']:.3f}, without it {found['auc_shipped']:.3f}"
        return f"{labels}; not corrected any more: {loss}"
    gain = f"AUC {found['auc_champion']:.3f} -> {found['auc_challenger']:.3f} +- {found['standard_error']:.3f}"
    return f"{labels}; corrected as {found['n_labels']} of them teach: {gain} (novel words {found['auc_lexical']:.3f})"
