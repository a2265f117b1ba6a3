"""Fitting P(unsupported | score) to weighted labels: which kind of curve, and how much of it is the app's own.

Both are chosen by the weighted log likelihood of labels that were held out, in folds that keep an interaction whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import numpy as np

from worker.rules.calibration.curve import MAX_KNOTS, Curve, curve_of
from worker.rules.calibration.labels import Booleans, Codes, Floats, Sample

FOLDS = 5
# The inverse penalty of the logistic curve on standardised scores: it only keeps separable labels finite.
RELUCTANCE = 100.0
# How much of the curve is the app's own; the rest is that of all other apps. The own one wins a tie.
OWN_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)


class CurveKind(StrEnum):
    """The shape of a curve. The logistic one wins a tie."""

    LOGISTIC = "logistic"
    ISOTONIC = "isotonic"


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted curve, the share in [0, 1] that is the app's own, and the held-out log likelihood a label, in nats."""

    curve: Curve
    kind: CurveKind
    own_share: float
    log_likelihood: float


def fit(sample: Sample, others: Sample, seed: int = 0) -> Fit:
    """The curve that predicts held-out labels best. ``sample`` needs at least FOLDS interactions.

    ``others`` are the labels of other apps, perhaps none; they owe nothing to what is held out.
    """
    shared = {kind: curve(others, kind) for kind in CurveKind}
    held_out = dict.fromkeys(product(OWN_SHARES if len(others) else OWN_SHARES[:1], CurveKind), 0.0)
    for training, test in folds(sample.clusters, seed):
        own = {kind: curve(sample.where(training), kind) for kind in CurveKind}
        for own_share, kind in held_out:
            tried = blended(own[kind], shared[kind], own_share)
            held_out[own_share, kind] += log_likelihood(tried, sample.where(test))
    own_share, kind = max(held_out, key=held_out.__getitem__)
    best = blended(curve(sample, kind), shared[kind], own_share)
    return Fit(best, kind, own_share, held_out[own_share, kind] / float(sample.weights.sum()))


def curve(sample: Sample, kind: CurveKind) -> Curve:
    """A curve of that kind; level where only one class or one score was seen, or where scores tell nothing."""
    if not len(sample):
        return Curve((0.0,), (0.5,))
    if sample.unsupported.all() or not sample.unsupported.any() or np.ptp(sample.scores) == 0:
        return _level(sample)
    return logistic(sample) if kind is CurveKind.LOGISTIC else isotonic(sample)


def isotonic(sample: Sample) -> Curve:
    """The monotone curve of the least weighted squares."""
    from sklearn.isotonic import IsotonicRegression  # here and below: two seconds to import, for few calls a day

    model = IsotonicRegression(increasing=False, out_of_bounds="clip")
    model.fit(sample.scores, sample.unsupported.astype(np.float64), sample_weight=sample.weights)
    return curve_of(model.X_thresholds_, _inside(model.y_thresholds_, sample))


def logistic(sample: Sample) -> Curve:
    """The logistic curve of the greatest weighted likelihood, hardly held back; level if it would rise."""
    from sklearn.linear_model import LogisticRegression

    middle, width = float(sample.scores.mean()), float(sample.scores.std())
    columns = ((sample.scores - middle) / width)[:, None]
    model = LogisticRegression(C=RELUCTANCE).fit(columns, sample.unsupported, sample_weight=sample.weights)
    if model.coef_[0, 0] >= 0:
        return _level(sample)
    knots = np.unique(np.quantile(sample.scores, np.linspace(0, 1, MAX_KNOTS)))
    return curve_of(knots, _inside(model.predict_proba(((knots - middle) / width)[:, None])[:, 1], sample))


def blended(own: Curve, shared: Curve, own_share: float) -> Curve:
    """Their weighted mean, which falls because both do."""
    if own_share == 1:
        return own
    knots = np.union1d(own.scores, shared.scores)
    return curve_of(knots, own_share * own.over(knots) + (1 - own_share) * shared.over(knots))


def _level(sample: Sample) -> Curve:
    prior = np.array([np.average(sample.unsupported, weights=sample.weights)])
    return curve_of(np.array([sample.scores.mean()]), _inside(prior, sample))


def _inside(probabilities: Floats, sample: Sample) -> Floats:
    """Never surer than the number of labels allows: half a label away from 0 and 1."""
    margin = 0.5 / (sample.effective_n + 1)
    return np.clip(probabilities, margin, 1 - margin)


def folds(clusters: Codes, seed: int = 0) -> list[tuple[Booleans, Booleans]]:
    """Masks of what is trained on and what is held out. A cluster is in one fold as a whole."""
    order = np.random.default_rng(seed).permutation(int(clusters.max()) + 1)
    number = order[clusters] % FOLDS
    return [(number != fold, number == fold) for fold in range(FOLDS) if (number == fold).any()]


def log_likelihood(fitted: Curve, sample: Sample) -> float:
    """The weighted log likelihood of the labels, in nats."""
    probabilities = np.clip(fitted.over(sample.scores), 1e-6, 1 - 1e-6)
    return float(sample.weights @ np.log(np.where(sample.unsupported, probabilities, 1 - probabilities)))
