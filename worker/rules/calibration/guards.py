"""What stands between a new threshold and the traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from worker.rules.calibration.fit import folds
from worker.rules.calibration.labels import Booleans, Floats, LabelledSentence, Population, Sample, Unanswered
from worker.rules.calibration.places import places_of
from worker.rules.policy import Objective, ReviewPolicy

MIN_UNSUPPORTED = 30
MIN_SUPPORTED = 30
MIN_INTERACTIONS = 20
# Labels of equal weight that would tell as much.
MIN_EFFECTIVE_N = 30.0
# At most this share of the traffic's sentences changes its verdict in one step, or one group of equal scores.
MAX_STEP = 0.25


def unusable(
    labelled: Sequence[LabelledSentence], unanswered: Sequence[Unanswered], population: Population
) -> str | None:
    """Why the input cannot be used at all, in a word; None if it can."""
    numbers = [(one.score, one.probability, one.labelled_at, one.time) for one in labelled]
    numbers += [(one.score, one.probability, one.asked_at, one.asked_at) for one in unanswered]
    if not np.isfinite(numbers).all() or not np.isfinite(population.scores).all():
        return "not_finite"
    if not np.isfinite(population.lowest).all() or not np.isfinite(population.sentences_a_day):
        return "not_finite"
    probabilities = [*(one.probability for one in labelled), *(one.probability for one in unanswered)]
    if any(not 0 < one <= 1 for one in probabilities):
        return "bad_probability"
    if not len(population.scores):
        return "no_traffic"
    return None


def too_little(sample: Sample) -> str | None:
    """Which kind of label there is too little of, in a word; None if there is enough of each."""
    unsupported = int(sample.unsupported.sum())
    if len(sample) < MIN_UNSUPPORTED + MIN_SUPPORTED:
        return "too_few_labels"
    if unsupported < MIN_UNSUPPORTED:
        return "too_few_unsupported"
    if len(sample) - unsupported < MIN_SUPPORTED:
        return "too_few_supported"
    if len(set(sample.names)) < MIN_INTERACTIONS:
        return "too_few_interactions"
    if sample.effective_n < MIN_EFFECTIVE_N:
        return "too_little_effective"
    return "no_spread" if np.ptp(sample.scores) == 0 else None


def limited(flag_below: float, in_force: float, scores: Floats) -> float:
    """The threshold, or the last place on the way to it where no more than MAX_STEP of the traffic got another verdict.

    Equal scores get it together: where the first group on the way is larger than the step, the step is that group.
    """
    now, then = (int((scores < bound).sum()) for bound in (in_force, flag_below))
    most = MAX_STEP * len(scores)
    if abs(then - now) <= most:
        return flag_below
    places = places_of(scores)
    # How many get another verdict on the way to each place, in the direction of the threshold.
    changed = (places.below - now) * (1 if then > now else -1)
    nearest = changed[changed > 0].min()
    reached = changed[changed <= max(most, nearest)].max()
    if reached >= abs(then - now):
        return flag_below
    return float(places.bounds[changed == reached][0])


def held_out_flags(sample: Sample, threshold: Callable[[Sample], float | None], otherwise: float) -> Booleans:
    """What would be flagged of each label under a ``threshold`` learned without its interaction.

    Where none can be learned, the threshold is ``otherwise``.
    """
    flagged = np.zeros(len(sample), dtype=np.bool_)
    for training, test in folds(sample.clusters):
        learned = threshold(sample.where(training))
        flagged[test] = sample.scores[test] < (otherwise if learned is None else learned)
    return flagged


def achieved(flagged: Booleans, sample: Sample, policy: ReviewPolicy) -> float:
    """What the flags achieve of the objective on the labels: a recall, a precision, a cost, or a flagged share."""
    flags, bad = sample.weights * flagged, sample.weights * sample.unsupported
    hits = float(flags @ sample.unsupported)
    match policy.objective:
        case Objective.RECALL:
            return hits / float(bad.sum())
        case Objective.PRECISION:
            return hits / float(flags.sum()) if flagged.any() else 0.0
        case Objective.COST:
            return (policy.target * float(bad @ ~flagged) + float(flags.sum())) / float(sample.weights.sum())
        case Objective.BUDGET:
            return float(flags.sum() / sample.weights.sum())


def is_worse(new: float, in_force: float, policy: ReviewPolicy) -> bool:
    """Whether the new version is further from the target than the one in force, or costs more.

    A review budget is read off the traffic and needs no labels, so nothing is worse there.
    """
    match policy.objective:
        case Objective.RECALL | Objective.PRECISION:
            return max(0.0, policy.target - new) > max(0.0, policy.target - in_force)
        case Objective.COST:
            return new > in_force
        case Objective.BUDGET:
            return False
