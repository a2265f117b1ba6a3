"""The curve P(unsupported | score): against scikit-learn, by property, and what it does with odd data."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_calibration_data import labels, made_up
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.fit import CurveKind, blended, curve, fit, folds
from worker.rules.calibration.labels import sample_of

NOBODY = sample_of([])


def test_the_isotonic_curve_is_that_of_scikit_learn() -> None:
    from sklearn.isotonic import IsotonicRegression  # seconds to import

    rows = [(score, bad, 1.0, index) for index, (score, bad) in enumerate(zip(range(12), "110110100100", strict=True))]
    sample = sample_of(labels(*((float(score), bad == "1", p, name) for score, bad, p, name in rows)))
    theirs = IsotonicRegression(increasing=False).fit(sample.scores, sample.unsupported)
    ours = curve(sample, CurveKind.ISOTONIC)
    expected = np.clip(theirs.predict(sample.scores), 0.5 / 13, 1 - 0.5 / 13)
    assert ours.over(sample.scores) == pytest.approx(expected, abs=1e-5)


def test_the_logistic_curve_is_that_of_scikit_learn_without_weights_and_repeats_a_label_of_twice_the_weight() -> None:
    from sklearn.linear_model import LogisticRegression  # seconds to import

    once = [replace(one, probability=1.0) for one in made_up(600, seed=2)]
    sample = sample_of(once)
    theirs = LogisticRegression(C=np.inf).fit(sample.scores[:, None], sample.unsupported)
    expected = theirs.predict_proba(sample.scores[:, None])[:, 1]
    assert curve(sample, CurveKind.LOGISTIC).over(sample.scores) == pytest.approx(expected, abs=0.01)
    doubled = [replace(one, probability=0.5 if one.unsupported else 1.0) for one in once]
    repeated = [*once, *(one for one in once if one.unsupported)]
    twice = curve(sample_of(repeated), CurveKind.LOGISTIC).over(sample.scores)
    assert curve(sample_of(doubled), CurveKind.LOGISTIC).over(sample.scores) == pytest.approx(twice, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-2, 3), st.booleans(), st.floats(1e-6, 1), st.integers(0, 9)), min_size=1, max_size=40)
)
def test_every_curve_falls_and_stays_within_zero_and_one(rows: list[tuple[float, bool, float, int]]) -> None:
    sample = sample_of(labels(*rows))
    one, other = (curve(sample, kind) for kind in CurveKind)
    scores = np.linspace(-3, 4, 50)
    for some in (one, other, blended(one, other, 0.25)):
        probabilities = some.over(scores)
        assert (np.diff(probabilities) <= 0).all()
        assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_a_curve_comes_back_from_json_the_same_and_has_few_knots() -> None:
    fitted = fit(sample_of(made_up(2000, seed=3)), NOBODY).curve
    assert len(fitted.scores) <= 33
    assert Curve.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


@pytest.mark.parametrize(
    ("scores", "probabilities"),
    [((), ()), ((0.0, 0.0), (0.5, 0.4)), ((0.0, 1.0), (0.4, 0.5)), ((0.0,), (1.5,)), ((0.0,), (float("nan"),))],
)
def test_what_is_no_falling_curve_is_refused(scores: tuple[float, ...], probabilities: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="curve"):
        Curve(scores, probabilities)


def test_a_thin_app_leans_on_the_others_where_they_are_alike_and_not_where_they_are_not() -> None:
    thin = [sample_of(made_up(60, seed=seed)) for seed in range(6)]
    others = made_up(3000, seed=5, name="b")
    alike, contrary = sample_of(others), sample_of([replace(one, unsupported=not one.unsupported) for one in others])
    assert np.mean([fit(sample, alike).own_share for sample in thin]) < 0.5
    assert np.mean([fit(sample, contrary).own_share for sample in thin]) > 0.9


def test_a_fold_keeps_an_interaction_whole_and_every_label_is_held_out_once() -> None:
    sample = sample_of(made_up(300, seed=6))
    held_out = np.zeros(len(sample))
    for training, test in folds(sample.clusters):
        assert not set(sample.clusters[training]) & set(sample.clusters[test])
        held_out += test
    assert (held_out == 1).all()
