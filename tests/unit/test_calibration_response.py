"""Weights for who answers: the order and the gaps of reviewing change neither a bound nor what is taken for drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_calibration_data import population, traffic
from worker.rules.calibration.drift import freshest, prior_drift
from worker.rules.calibration.labels import LabelledSentence, Unanswered, sample_of
from worker.rules.calibration.recalibrate import InForce, recalibrate
from worker.rules.calibration.response import weighted_by_response
from worker.rules.policy import DEFAULT_POLICY

SEEN = population()
SCORES, TRUTHS = traffic(100_000, seed=77)
WEEKS, A_WEEK = 20, 40

Habit = Callable[[list[LabelledSentence], np.random.Generator], list[LabelledSentence]]


def asked(seed: int) -> list[list[LabelledSentence]]:
    """What people are asked about week by week; unflagged ones less often than flagged ones."""
    rng = np.random.default_rng(seed + 500)
    scores, unsupported = traffic(WEEKS * A_WEEK * 3, seed=seed)
    probabilities = np.where(scores < 0.4, 0.6, 0.4)
    weeks = np.sort(rng.integers(0, WEEKS, len(scores)))
    found: list[list[LabelledSentence]] = [[] for _ in range(WEEKS)]
    for i in np.flatnonzero(rng.random(len(scores)) < probabilities):
        one = LabelledSentence(float(scores[i]), bool(unsupported[i]), float(probabilities[i]), int(i), 0.0)
        found[weeks[i]].append(replace(one, asked_at=float(weeks[i])))
    return found


def lowest_first(part: float) -> Habit:
    return lambda week, _: sorted(week, key=lambda one: one.score)[: round(part * len(week))]


def at_random(week: list[LabelledSentence], rng: np.random.Generator) -> list[LabelledSentence]:
    return [one for one in week if rng.random() < 0.5]


def some_weeks(week: list[LabelledSentence], rng: np.random.Generator) -> list[LabelledSentence]:
    return week if rng.random() < 0.4 else []


def reviewed(seed: int, habit: Habit) -> tuple[list[LabelledSentence], list[Unanswered]]:
    rng = np.random.default_rng(seed + 900)
    labelled: list[LabelledSentence] = []
    unanswered: list[Unanswered] = []
    for week in asked(seed):
        answered = habit(week, rng)
        labelled += [replace(one, labelled_at=float(len(labelled) + place)) for place, one in enumerate(answered)]
        read = {one.cluster for one in answered}
        unanswered += [
            Unanswered(one.score, one.probability, one.asked_at or 0.0) for one in week if one.cluster not in read
        ]
    return labelled, unanswered


@pytest.mark.parametrize(
    "habit", [lowest_first(0.6), lowest_first(0.8), at_random, some_weeks], ids=["60 %", "80 %", "random", "some weeks"]
)
def test_intervals_hold_whatever_is_left_unread(habit: Habit) -> None:
    covered = []
    for seed in range(30):
        labelled, unanswered = reviewed(seed, habit)
        result = recalibrate("bot", labelled, [], SEEN, None, DEFAULT_POLICY, InForce(0.4, 0.4), unanswered)
        achieved = float((result.flag_below > SCORES)[TRUTHS].mean())
        low, high = result.numbers["recall_low"], result.numbers["recall_high"]
        covered.append(low <= achieved <= high)  # type: ignore[operator]  # floats
    assert sum(covered) >= 27


def test_reading_everything_in_order_of_scores_looks_like_no_drift() -> None:
    everything = sorted((one for week in asked(1) for one in week), key=lambda one: one.score)
    sitting = [replace(one, labelled_at=1000.0 + place) for place, one in enumerate(everything)]
    sample = sample_of(sitting)
    assert not prior_drift(sample).is_significant
    assert len(freshest(sample)) == len(sitting)
    assert prior_drift(sample_of([replace(one, asked_at=None) for one in sitting])).is_significant


def test_a_stratum_of_which_half_was_read_counts_twice() -> None:
    labelled = [LabelledSentence(float(i < 40), i % 2 == 0, 1.0, i, 0.0) for i in range(120)]
    unanswered = [Unanswered(1.0, 1.0, 0.0)] * 40
    sample, response = weighted_by_response(labelled, unanswered)
    weights = sample.weights / sample.weights.min()
    assert weights[sample.scores == 1].tolist() == pytest.approx([2.0] * 40)
    assert weights[sample.scores == 0].tolist() == pytest.approx([1.0] * 80)
    assert (response.rate, response.lowest, response.silent) == (0.75, 0.5, 0.0)
    assert not len(sample.silent)


def test_scores_at_which_nobody_answers_are_silent_and_keep_their_weight() -> None:
    labelled = [LabelledSentence(i / 100, i % 2 == 0, 0.5, i, 0.0) for i in range(100)]
    sample, response = weighted_by_response(labelled, [Unanswered(2.0 + i, 0.25, 0.0) for i in range(100)])
    assert sample.silent.scores.tolist() == [2.0 + i for i in range(100)]
    assert (sample.silent.weights / sample.weights.min()).tolist() == pytest.approx([2.0] * 100)
    assert response.lowest == 0.0
    assert response.silent == pytest.approx(2 / 3)


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.05, 1), st.integers(0, 9), st.booleans()), min_size=1))
def test_labels_and_what_is_silent_stand_for_all_that_was_asked_about(
    rows: list[tuple[float, float, int, bool]],
) -> None:
    labelled = [
        LabelledSentence(score, place % 2 == 0, probability, place, 0.0, float(time))
        for place, (score, probability, time, answered) in enumerate(rows)
        if answered
    ]
    unanswered = [
        Unanswered(score, probability, float(time)) for score, probability, time, answered in rows if not answered
    ]
    sample, response = weighted_by_response(labelled, unanswered)
    assert 0 <= response.lowest <= response.rate <= 1 + 1e-9
    if not labelled:
        assert not len(sample)
        return
    assert sample.weights.mean() == pytest.approx(1.0)
    assert (sample.weights > 0).all()
    spoken_for = sample.weights.sum() + sample.silent.weights.sum()
    assert sample.silent.weights.sum() / spoken_for == pytest.approx(response.silent, abs=1e-9)
