"""Which sentences people are asked about, and whether the stored probabilities are true."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bars import bar
from worker.rules.policy import DEFAULT_POLICY, Objective
from worker.rules.selection import Reason, SamplingBudget, expected_weights, select, selection_probabilities

PACE = SamplingBudget(30, 0, 60.0, 20, 0, 100.0, spread=0.5)
GAPS = st.floats(-5, 8)
PACES = st.builds(
    SamplingBudget,
    st.integers(1, 100),
    st.integers(0, 300),
    st.none() | st.floats(0, 1e5),
    st.integers(1, 100),
    st.integers(0, 300),
    st.none() | st.floats(0, 1e5),
    st.floats(0.1, 2),
)

ROOMY = PACES.map(
    lambda budget: replace(
        budget, flagged_budget=budget.flagged_budget + 312, sampled_budget=budget.sampled_budget + 312
    )
)


def test_probabilities_are_those_worked_by_hand() -> None:
    flagged, sampled = 30 / 60, 20 / 100
    near, far = sampled * math.exp(-0.1 / 0.5), sampled * 0.4
    expected = (flagged * (1 + 0.1 / 0.5), 1.0, None, near, far)
    assert selection_probabilities((0.2, -0.7, None, 0.4, 9.0), 0.3, PACE) == pytest.approx(expected)


def test_a_sentence_on_the_threshold_is_not_flagged() -> None:
    chosen = select((0.3,), 0.3, replace(PACE, expected_sampled=1.0), 0.0)
    assert chosen is not None
    assert chosen.reason is Reason.SAMPLED


def test_beyond_half_of_the_budget_probabilities_ease_and_never_reach_zero() -> None:
    def after(issued: int) -> float:
        probability = selection_probabilities((0.3 - 1e-9,), 0.3, replace(PACE, flagged_issued=issued))[0]
        assert probability is not None
        return probability

    assert after(0) == after(15) == pytest.approx(0.5)
    assert after(30) == pytest.approx(0.5 * math.exp(-1.5))
    assert after(10_000) == pytest.approx(0.05)


def test_no_budget_of_a_kind_asks_for_none_of_that_kind() -> None:
    assert selection_probabilities((0.0, 1.0), 0.3, replace(PACE, sampled_budget=0))[1] == 0
    assert select((0.0, 1.0), 0.3, replace(PACE, sampled_budget=0, flagged_budget=0), 0.0) is None


@given(st.lists(GAPS, min_size=1, max_size=20), GAPS, PACES)
def test_probabilities_lie_above_zero_and_a_lower_gap_of_a_kind_is_never_less_likely(
    gaps: list[float], flag_below: float, budget: SamplingBudget
) -> None:
    ordered = sorted(gaps)
    probabilities = selection_probabilities(ordered, flag_below, budget)
    for kind in (True, False):
        some = [
            p for gap, p in zip(ordered, probabilities, strict=True) if p is not None and (gap < flag_below) is kind
        ]
        assert all(0 < p <= 1 for p in some)
        assert some == sorted(some, reverse=True)


@given(st.lists(st.none() | GAPS, max_size=12), GAPS, ROOMY, st.floats(0, 1, exclude_max=True))
def test_exactly_the_sentences_more_likely_than_the_number_are_asked_where_the_budget_has_room_for_all(
    gaps: list[float | None], flag_below: float, budget: SamplingBudget, uniform: float
) -> None:
    probabilities = selection_probabilities(gaps, flag_below, budget)
    due = {index for index, p in enumerate(probabilities) if p is not None and uniform < p}
    chosen = select(gaps, flag_below, budget, uniform)
    if chosen is None:
        assert not due
        return
    assert {one.sentence_index for one in chosen.sentences} == due
    assert chosen.probability == max(one.probability for one in chosen.sentences)
    assert (chosen.reason is Reason.FLAGGED) == any(one.reason is Reason.FLAGGED for one in chosen.sentences)


@pytest.mark.parametrize("issued", [0, 20, 29, 31, 500])
@pytest.mark.parametrize("expected", [None, 1.0, 1e5])
def test_an_answer_of_any_length_is_asked_about_within_what_is_left_of_the_budget(
    issued: int, expected: float | None
) -> None:
    budget = SamplingBudget(30, issued, expected, 20, issued, expected)
    scores = np.random.default_rng(3).normal(0.3, 1.0, 200).tolist()
    for uniform in np.linspace(0, 1, 101)[:-1]:
        chosen = select(scores, 0.3, budget, uniform)
        counts = Counter(one.reason for one in chosen.sentences) if chosen else Counter()
        # A tenth of the budget is left when it is spent, so that what cannot be asked about still has a voice.
        assert counts[Reason.FLAGGED] <= max(30 - issued, 3)
        assert counts[Reason.SAMPLED] <= max(20 - issued, 2)


@pytest.mark.parametrize("expected", [None, 60.0, 1e3])
def test_the_stored_probability_of_a_long_answers_sentence_is_how_often_it_is_asked_about(
    expected: float | None,
) -> None:
    budget = SamplingBudget(12, 4, expected, 8, 1, expected)
    scores = np.random.default_rng(5).normal(0.3, 0.5, 30).tolist()
    draws = bar(6_000, 1_500)
    asked = Counter[int]()
    stored: dict[int, float] = {}
    for number in range(draws):
        chosen = select(scores, 0.3, budget, (number + 0.5) / draws)
        for one in chosen.sentences if chosen else ():
            asked[one.sentence_index] += 1
            assert stored.setdefault(one.sentence_index, one.probability) == one.probability
    probabilities = selection_probabilities(scores, 0.3, budget)
    for index, probability in enumerate(probabilities):
        assert probability is not None
        # The numbers lie evenly, so that each part of the ruler is met by as many as it is long, but for its ends.
        assert abs(asked[index] / draws - probability) <= 2 / draws


def test_weighting_by_the_stored_probability_gives_the_traffic_back_whatever_the_budget_does() -> None:
    rng = np.random.default_rng(3)
    start = SamplingBudget(12, 0, 24.0, 12, 0, 24.0)
    totals = []
    for _ in range(400):
        issued, total = [0, 0], 0.0
        for gaps in rng.gamma(2, 0.3, (40, 5)):
            budget = replace(start, flagged_issued=issued[0], sampled_issued=issued[1])
            chosen = select(gaps.tolist(), 0.3, budget, rng.random())
            for one in chosen.sentences if chosen else ():
                issued[one.reason is Reason.SAMPLED] += 1
                total += 1 / one.probability
        totals.append(total)
    error = np.std(totals) / math.sqrt(len(totals))
    assert abs(np.mean(totals) - 40 * 5) < 3 * error
    assert error < 6


def test_expected_weights_let_a_usual_day_spend_most_of_its_budget_and_no_more() -> None:
    rng = np.random.default_rng(4)
    day = rng.gamma(2, 0.3, (300, 5))
    flagged, sampled = expected_weights(day.ravel(), 0.3, 0.5)
    issued = [0, 0]
    for gaps in day:
        budget = SamplingBudget(60, issued[0], flagged, 40, issued[1], sampled, 0.5)
        chosen = select(gaps.tolist(), 0.3, budget, rng.random())
        for one in chosen.sentences if chosen else ():
            issued[one.reason is Reason.SAMPLED] += 1
    assert 0.6 * 60 < issued[0] < 1.1 * 60
    assert 0.6 * 40 < issued[1] < 1.1 * 40


def test_expected_weights_are_those_worked_by_hand() -> None:
    flagged, sampled = expected_weights(np.array([-0.2, 0.3, 0.8, 5.0]), 0.3, 0.5)
    assert (flagged, sampled) == pytest.approx((2.0, 1 + 0.4 + 0.4))


def test_the_budget_is_divided_between_the_kinds() -> None:
    assert (DEFAULT_POLICY.flagged_budget, DEFAULT_POLICY.sampled_budget) == (30, 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": 1.0}, r"target of recall lies in \(0, 1\)"),
        ({"objective": Objective.PRECISION, "target": math.nan}, "target of precision"),
        ({"objective": Objective.COST, "target": 0.0}, "target of cost is above 0"),
        ({"objective": Objective.BUDGET, "target": math.inf}, "target of budget"),
        ({"daily_sentences": -1}, "daily_sentences"),
        ({"sampled_share": 1.1}, "sampled_share"),
        ({"attribution_share": -0.1}, "attribution_share"),
        ({"reviewers": 0}, "reviewers"),
    ],
)
def test_a_policy_that_means_nothing_is_refused_by_field(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(DEFAULT_POLICY, **changes)  # type: ignore[arg-type]  # fields of several types


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sampled_share": 0.0}, ("is unflagged", "too_few_unflagged", "--sampled-share 0.02")),
        ({"daily_sentences": 1}, ("is unflagged", "too_few_unflagged", "--daily-sentences 2 --sampled-share 0.4")),
        ({"daily_sentences": 1, "sampled_share": 0.0}, ("is unflagged", "--daily-sentences 2 --sampled-share 0.4")),
        ({"daily_sentences": 1, "sampled_share": 0.01}, ("is unflagged", "--daily-sentences 51 --sampled-share 0.01")),
        ({"daily_sentences": 10, "sampled_share": 0.04}, ("is unflagged", "--sampled-share 0.1")),
        ({"sampled_share": 1.0}, ("is flagged", "too_few_flagged", "--sampled-share 0.98")),
        ({"daily_sentences": 0}, ("nobody is asked",)),
    ],
)
def test_a_policy_says_what_its_labels_could_never_tell(changes: dict[str, float], said: tuple[str, ...]) -> None:
    broken = replace(DEFAULT_POLICY, **changes).breaks  # type: ignore[arg-type]  # fields of several types
    assert broken is not None
    assert all(words in broken for words in said)


@given(st.integers(1, 200), st.floats(0, 1))
def test_the_remedy_that_a_policy_names_is_one(daily: int, share: float) -> None:
    policy = replace(DEFAULT_POLICY, daily_sentences=daily, sampled_share=share)
    if policy.breaks is None:
        assert min(policy.flagged_budget, policy.sampled_budget) > 0
        return
    named = dict(re.findall(r"--(daily-sentences|sampled-share) (\S+)", policy.breaks))
    mended = replace(
        policy,
        daily_sentences=int(named.get("daily-sentences", daily)),
        sampled_share=float(named.get("sampled-share", share)),
    )
    assert mended.breaks is None
