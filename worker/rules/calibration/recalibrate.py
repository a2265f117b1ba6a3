"""From labels to a threshold, or to the reason why there is no new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from worker.rules.calibration.choose import attribution_bound, candidates, choose, fulfilled
from worker.rules.calibration.coverage import unspoken_for
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.drift import freshest, population_stability, prior_drift
from worker.rules.calibration.estimate import Estimates, estimate
from worker.rules.calibration.fit import Fit, blended, curve, fit
from worker.rules.calibration.guards import achieved, held_out_flags, is_worse, limited, too_little, unusable
from worker.rules.calibration.labels import Floats, LabelledSentence, Population, Sample, Unanswered, sample_of
from worker.rules.calibration.response import Response, weighted_by_response
from worker.rules.policy import Objective, ReviewPolicy

# A new threshold that changes the verdict of less than this share of the traffic is not worth a version.
LEAST_CHANGE = 0.005
# Nor is an attribution threshold that moves less than this share of the answers, which would be noise of the quantile.
LEAST_ATTRIBUTION_CHANGE = 0.05
# Nor a curve that moves the probability of a sentence by less than this on average.
LEAST_CURVE_CHANGE = 0.05

Numbers = dict[str, float | int | str | None]


class CalibrationOutcome(StrEnum):
    """The outcome of a recalibration."""

    NEW = "new"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class InForce:
    """The bounds in force, as scores, and the curve that gives probabilities; None if there is none yet."""

    flag_below: float
    attribute_below: float
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class Recalibration:
    """The outcome, its reason in a stable word, the bounds to use from now on, and how they were arrived at.

    ``reason`` is ``reached`` or ``step_limited`` with NEW, ``reached`` with UNCHANGED, and with REFUSED one of
    not_finite, bad_probability, no_traffic, no_spread, too_few_labels, too_few_unsupported, too_few_supported,
    too_few_interactions, too_little_effective, too_few_unflagged, too_few_flagged, unreachable, worse_than_in_force.
    The bounds are those in force unless the outcome is NEW. ``curve`` is None where none was fitted. ``numbers`` is
    flat and JSON; what it says of recall, precision and flagged share is of ``flag_below``.
    """

    outcome: CalibrationOutcome
    reason: str
    flag_below: float
    attribute_below: float
    curve: Curve | None
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Everything that is looked at, once."""

    sample: Sample
    others: Sample
    population: Population
    policy: ReviewPolicy
    in_force: InForce
    thresholds: Floats


def recalibrate(
    app: str | None,
    labelled: Sequence[LabelledSentence],
    pooled: Sequence[LabelledSentence],
    population: Population,
    reference: Floats | None,
    policy: ReviewPolicy,
    in_force: InForce,
    unanswered: Sequence[Unanswered] = (),
) -> Recalibration:
    """Fit, choose and check; never raises for the data, which may be odd in any way.

    ``labelled`` are the app's labels (``app`` None: those of every app), ``pooled`` those of every app, of one scorer
    identity. ``reference`` are the scores of an earlier window, ``unanswered`` what else the app's reviewers were asked
    about. The same input gives the same result.
    """
    numbers: Numbers = {"app": app, "objective": str(policy.objective), "target": policy.target}
    reason = unusable([*labelled, *pooled], unanswered, population)
    if reason is None and reference is not None and not np.isfinite(reference).all():
        reason = "not_finite"
    if reason is not None:
        return _refused(reason, in_force, numbers | {"n_labels": len(labelled)})
    everything, response = weighted_by_response(labelled, unanswered)
    numbers |= _counts(everything) | _responses(response, len(labelled) + len(unanswered))
    numbers |= _score_drift(population, reference)
    reason = too_little(everything)
    if reason is not None:
        return _refused(reason, in_force, numbers)
    sample = freshest(everything)
    numbers |= _prior_drift(everything, sample) | _unflagged(sample, in_force.flag_below)
    reason = unspoken_for(sample, population.scores, in_force.flag_below)
    if reason is not None:
        return _refused(reason, in_force, numbers)
    thresholds = candidates(population, in_force.flag_below)
    others = sample_of(_others(labelled, pooled))
    evidence = _Evidence(sample, others, population, policy, in_force, thresholds)
    return _decide(evidence, numbers)


def _decide(evidence: _Evidence, numbers: Numbers) -> Recalibration:
    fitted = fit(evidence.sample, evidence.others)
    numbers |= {"fit": str(fitted.kind), "own_share": fitted.own_share, "log_likelihood": fitted.log_likelihood}
    wanted = _choice(evidence.sample, fitted.curve, evidence)
    if wanted is None:
        return _kept(CalibrationOutcome.REFUSED, "unreachable", evidence, fitted, numbers)
    flag_below = limited(wanted, evidence.in_force.flag_below, evidence.population.scores)
    new, old = _held_out(evidence, fitted)
    numbers |= {"held_out_new": new, "held_out_in_force": old, "flag_below_wanted": wanted}
    if _is_near(flag_below, evidence) and _holds(evidence, fitted.curve):
        return _same_flags(_kept(CalibrationOutcome.UNCHANGED, "reached", evidence, fitted, numbers), evidence)
    if is_worse(new, old, evidence.policy):
        return _kept(CalibrationOutcome.REFUSED, "worse_than_in_force", evidence, fitted, numbers)
    return Recalibration(
        CalibrationOutcome.NEW,
        "reached" if flag_below == wanted else "step_limited",
        flag_below,
        attribution_bound(evidence.population.lowest, evidence.policy.attribution_share, flag_below),
        fitted.curve,
        numbers | _achievement(flag_below, evidence, fitted.curve),
    )


def _others(labelled: Sequence[LabelledSentence], pooled: Sequence[LabelledSentence]) -> list[LabelledSentence]:
    """The labels of other apps: all but those of the app's own interactions."""
    own = {one.cluster for one in labelled}
    return [one for one in pooled if one.cluster not in own]


def _choice(sample: Sample, fitted: Curve, evidence: _Evidence) -> float | None:
    estimates = estimate(sample, evidence.thresholds, evidence.population.scores, fitted)
    index = choose(estimates, fitted, evidence.policy, evidence.population.sentences_a_day)
    return None if index is None else float(evidence.thresholds[index])


def _holds(evidence: _Evidence, fitted: Curve) -> bool:
    """Whether what is in force fulfils the objective already."""
    present, population = np.array([evidence.in_force.flag_below]), evidence.population
    estimates = estimate(evidence.sample, present, population.scores, fitted)
    return bool(fulfilled(estimates, evidence.policy, population.sentences_a_day)[0])


def _is_near(flag_below: float, evidence: _Evidence) -> bool:
    """Whether so few sentences lie between it and what is in force that it is not worth a version."""
    return between(evidence.population.scores, flag_below, evidence.in_force.flag_below) < LEAST_CHANGE


def _held_out(evidence: _Evidence, fitted: Fit) -> tuple[float, float]:
    """What a new version and the one in force achieve on labels that did not choose it."""
    sample, in_force, shared = evidence.sample, evidence.in_force.flag_below, curve(evidence.others, fitted.kind)

    def learn(training: Sample) -> float | None:
        own = blended(curve(training, fitted.kind), shared, fitted.own_share)
        wanted = _choice(training, own, evidence)
        return None if wanted is None else limited(wanted, in_force, evidence.population.scores)

    new = achieved(held_out_flags(sample, learn, in_force), sample, evidence.policy)
    return new, achieved(sample.scores < in_force, sample, evidence.policy)


def _same_flags(kept: Recalibration, evidence: _Evidence) -> Recalibration:
    """A new version only if another share of the answers than allowed is attributed, or for the probabilities."""
    bound = attribution_bound(evidence.population.lowest, evidence.policy.attribution_share, kept.flag_below)
    if between(evidence.population.lowest, bound, kept.attribute_below) >= LEAST_ATTRIBUTION_CHANGE:
        return replace(kept, outcome=CalibrationOutcome.NEW, attribute_below=bound)
    if _curve_change(kept.curve, evidence) >= LEAST_CURVE_CHANGE:
        return replace(kept, outcome=CalibrationOutcome.NEW)
    return kept


def _curve_change(fitted: Curve | None, evidence: _Evidence) -> float:
    """By how much the probability of a sentence of the traffic would change, on average."""
    present, scores = evidence.in_force.curve, evidence.population.scores
    if fitted is None or present is None:
        return 1.0
    return float(np.abs(fitted.over(scores) - present.over(scores)).mean())


def between(scores: Floats, one: float, other: float) -> float:
    """The share of the scores whose verdict differs between two thresholds; 0 of none."""
    low, high = sorted((one, other))
    return float(((scores >= low) & (scores < high)).sum()) / max(1, len(scores))


def _refused(reason: str, in_force: InForce, numbers: Numbers) -> Recalibration:
    return Recalibration(
        CalibrationOutcome.REFUSED, reason, in_force.flag_below, in_force.attribute_below, None, numbers
    )


def _kept(
    outcome: CalibrationOutcome, reason: str, evidence: _Evidence, fitted: Fit, numbers: Numbers
) -> Recalibration:
    """What is in force stays, with what it achieves."""
    numbers = numbers | _achievement(evidence.in_force.flag_below, evidence, fitted.curve)
    kept = _refused(reason, evidence.in_force, numbers)
    return replace(kept, outcome=outcome, curve=fitted.curve)


def _achievement(flag_below: float, evidence: _Evidence, fitted: Curve) -> Numbers:
    """Recall, precision, prior, cost and flagged share at one threshold, with bounds."""
    estimates = estimate(evidence.sample, np.array([flag_below]), evidence.population.scores, fitted)
    return _numbers(estimates, evidence.policy)


def _numbers(estimates: Estimates, policy: ReviewPolicy) -> Numbers:
    intervals = {"recall": estimates.recall, "precision": estimates.precision, "prior": estimates.prior}
    if policy.objective is Objective.COST:
        intervals["cost"] = estimates.cost(policy.target)
    numbers: Numbers = {"flagged_share": float(estimates.flagged_share[0])}
    for name, interval in intervals.items():
        numbers |= dict(zip((name, f"{name}_low", f"{name}_high"), map(_finite, interval.at(0)), strict=True))
    return numbers


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _counts(sample: Sample) -> Numbers:
    return {
        "n_labels": len(sample),
        "n_unsupported": int(sample.unsupported.sum()),
        "n_interactions": len(set(sample.names)),
        "effective_n": sample.effective_n,
    }


def _responses(response: Response, asked: int) -> Numbers:
    return {
        "n_asked": asked,
        "response_rate": response.rate,
        "response_lowest": response.lowest,
        "response_silent": response.silent,
    }


def _unflagged(sample: Sample, flag_below: float) -> Numbers:
    """How many labels lie above the threshold in force, and for which share of the sentences they stand."""
    above = sample.scores >= flag_below
    return {"n_unflagged": int(above.sum()), "unflagged_share": float(sample.weights @ above / sample.weights.sum())}


def _score_drift(population: Population, reference: Floats | None) -> Numbers:
    return {
        "psi": None if reference is None or not len(reference) else population_stability(population.scores, reference)
    }


def _prior_drift(everything: Sample, kept: Sample) -> Numbers:
    drift = prior_drift(everything)
    return {
        "prior_drift": _finite(drift.difference),
        "prior_drift_low": _finite(drift.low),
        "prior_drift_high": _finite(drift.high),
        "n_labels_used": len(kept),
    }
