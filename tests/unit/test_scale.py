"""Scores under different corrections on one scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.detectors.fused_model import Term
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.labels import Population
from worker.rules.calibration.recalibrate import InForce
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.refit.lesson import TaughtSentence
from worker.rules.scale import carried_over, labelled_under

LEARNED = Correction((Term("coverage", 0.5, 0.25, 1.5),))
KNOWN = TaughtSentence(1.0, tuple(0.75 for _ in TERMS), unsupported=True, probability=0.5, cluster="a", labelled_at=3.0)
UNKNOWN = TaughtSentence(2.0, (), unsupported=False, probability=0.25, cluster="b", labelled_at=4.0)

scores = st.lists(st.floats(-50, 50), min_size=1, max_size=60)


def traffic(found: list[float]) -> Population:
    return Population(np.array(found), np.array(found), 1.0)


def test_without_a_correction_the_scores_are_the_detectors() -> None:
    assert [one.score for one in labelled_under([KNOWN, UNKNOWN], None)] == [1.0, 2.0]


def test_under_a_correction_only_what_has_terms_has_a_score() -> None:
    (found,) = labelled_under([KNOWN, UNKNOWN], LEARNED)
    assert (found.score, found.unsupported, found.probability, found.cluster, found.labelled_at) == (
        2.5,
        True,
        0.5,
        "a",
        3.0,
    )


@given(scores, st.floats(-60, 60), st.floats(0, 30))
def test_bounds_that_are_carried_over_to_the_same_scores_flag_the_same(
    found: list[float], at: float, more: float
) -> None:
    carried = carried_over(InForce(at, at + more, Curve((0.0,), (0.5,))), traffic(found), traffic(found))
    before, after = (np.array(found) < bound for bound in (at, carried.flag_below))
    assert (before == after).all()
    assert ((np.array(found) < at + more) == (np.array(found) < carried.attribute_below)).all()
    assert carried.curve is None


@given(scores, st.floats(0.1, 9), st.floats(-20, 20), st.floats(-60, 60))
def test_the_same_sentences_are_flagged_when_the_scale_alone_changes(
    found: list[float], width: float, shift: float, at: float
) -> None:
    moved = [score * width + shift for score in found]
    if len(set(moved)) < len(set(found)):
        return
    carried = carried_over(InForce(at, at), traffic(found), traffic(moved))
    assert ((np.array(found) < at) == (np.array(moved) < carried.flag_below)).all()
    assert carried.attribute_below >= carried.flag_below


def test_a_correction_that_could_not_be_reckoned_is_none() -> None:
    for term in (
        Term("coverage", 0.0, 0.0, 1.0),
        Term("coverage", float("nan"), 1.0, 1.0),
        Term("shoes", 0.0, 1.0, 1.0),
    ):
        with pytest.raises(ValueError, match=r"correction|no term"):
            Correction((term,))
