"""The bounds of an app without labels: the lowest share of its own scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.rules.calibration.labels import Floats
from worker.rules.policy import DEFAULT_POLICY, Objective
from worker.rules.traffic import (
    LEAST_ANSWERS,
    LEAST_SENTENCES,
    Recent,
    TrafficBounds,
    bound_below,
    follows_traffic,
    has_moved,
    share_to_flag,
    traffic_bounds,
)
from worker.rules.verdict import Threshold

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINITE = st.floats(-1e6, 1e6)


def recent(scores: Floats, sentences_an_answer: int = 5) -> Recent:
    lowest = [scores[start : start + sentences_an_answer].min() for start in range(0, len(scores), sentences_an_answer)]
    return Recent(scores, np.array(lowest), NOW, NOW)


def drawn(n: int, mean: float = 0.0, seed: int = 0) -> Recent:
    return recent(np.random.default_rng(seed).normal(mean, 1.0, n))


def threshold(
    flag_below: float, attribute_below: float, learned_from: str = "traffic", app: str | None = "a"
) -> Threshold:
    return Threshold(1, app, 1, flag_below, attribute_below, learned_from, NOW)


def bounds(found: Recent, share: float = 0.15) -> TrafficBounds:
    wanted = traffic_bounds(found, share, DEFAULT_POLICY.attribution_share)
    assert wanted is not None
    return wanted


# --- the bound ---


@given(st.lists(FINITE, min_size=1, max_size=300, unique=True), st.floats(0.001, 0.999))
def test_the_share_of_different_scores_below_the_bound_is_the_wanted_one(scores: list[float], share: float) -> None:
    flagged = int((np.array(scores) < bound_below(np.array(scores), share)).sum())
    assert abs(flagged - share * len(scores)) <= 1


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=60), st.floats(0.001, 0.999))
def test_of_equal_scores_all_are_flagged_or_none_whichever_is_nearer(scores: list[float], share: float) -> None:
    values = np.array(scores)
    possible = [int((values < edge).sum()) for edge in (*np.unique(values), np.inf)]
    flagged = int((values < bound_below(values, share)).sum())
    assert flagged in possible
    assert abs(flagged - share * len(scores)) == pytest.approx(min(abs(one - share * len(scores)) for one in possible))


@given(st.lists(FINITE, min_size=2, max_size=100), st.floats(0.01, 0.98), st.floats(0.001, 0.01))
def test_a_larger_share_has_no_lower_bound(scores: list[float], share: float, more: float) -> None:
    values = np.array(scores)
    assert bound_below(values, share) <= bound_below(values, share + more)


@pytest.mark.parametrize("mean", [-50.0, 0.0, 50.0])
def test_wherever_the_scores_lie_the_lowest_share_of_them_is_flagged(mean: float) -> None:
    found = drawn(1000, mean)
    assert (found.scores < bounds(found).flag_below).mean() == 0.15


def test_the_attribution_bound_is_that_share_of_the_answers_and_never_below_the_other() -> None:
    found = drawn(1000)
    wanted = traffic_bounds(found, 0.01, 0.5)
    assert wanted is not None
    assert (found.lowest < wanted.attribute_below).mean() == pytest.approx(0.5, abs=0.01)
    assert bounds(found, 0.5).attribute_below == bounds(found, 0.5).flag_below


def test_until_there_are_enough_scores_of_enough_answers_that_differ_there_is_no_bound() -> None:
    assert traffic_bounds(drawn(LEAST_SENTENCES), 0.15, 0.2) is not None
    assert traffic_bounds(drawn(LEAST_SENTENCES - 1), 0.15, 0.2) is None
    long = recent(drawn(400).scores, sentences_an_answer=400 // (LEAST_ANSWERS - 1) + 1)
    assert len(long.lowest) == LEAST_ANSWERS - 1
    assert traffic_bounds(long, 0.15, 0.2) is None
    assert traffic_bounds(recent(np.full(400, 0.5)), 0.15, 0.2) is None


# --- which share ---


def test_the_share_is_the_policys_or_what_its_budget_of_flags_can_read_if_that_is_less() -> None:
    assert share_to_flag(DEFAULT_POLICY, 100_000.0) == 0.15
    budget = replace(DEFAULT_POLICY, objective=Objective.BUDGET, target=20.0)
    assert share_to_flag(budget, 1000.0) == 0.02
    assert share_to_flag(budget, 50.0) == 0.15
    assert share_to_flag(budget, 0.0) == 0.15


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_share_that_flags_nothing_everything_or_no_number_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"flag_share lies in \(0, 1\)"):
        replace(DEFAULT_POLICY, flag_share=share)


# --- in place of what, and when ---


@pytest.mark.parametrize(
    ("app", "learned_from", "follows"),
    [
        (None, "seeded", True),
        (None, "calibrated", True),
        (None, "manual", False),
        ("a", "traffic", True),
        ("a", "calibrated", False),
        ("a", "manual", False),
    ],
)
def test_what_the_app_learned_or_a_person_set_is_never_replaced(
    app: str | None,
    learned_from: str,
    follows: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert follows_traffic(threshold(0.1, 0.2, learned_from, app)) is follows


def test_bounds_stay_where_they_are_until_the_share_is_off_by_more_than_a_fifth() -> None:
    before = bounds(drawn(5000))
    in_force = threshold(before.flag_below, before.attribute_below)
    for mean, moved in ((0.0, False), (0.05, False), (-0.05, False), (0.5, True), (-0.5, True)):
        later = drawn(5000, mean, seed=1)
        assert has_moved(later, in_force, bounds(later)) is moved


def test_attribution_alone_may_move_the_bounds() -> None:
    found = drawn(5000)
    wanted = traffic_bounds(found, 0.01, 0.5)
    assert wanted is not None
    assert has_moved(found, threshold(wanted.flag_below, wanted.flag_below), wanted)
    assert not has_moved(found, threshold(wanted.flag_below, wanted.attribute_below), wanted)


@given(st.integers(0, 200), st.floats(0.01, 0.5), st.sampled_from([200, 600, 2000]))
def test_what_was_just_put_in_force_does_not_move(seed: int, share: float, n: int) -> None:
    found = drawn(n, seed=seed)
    wanted = bounds(found, share)
    assert not has_moved(found, threshold(wanted.flag_below, wanted.attribute_below), wanted)
