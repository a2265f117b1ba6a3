"""The weighted area under the ROC curve, and how sure a difference of two is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from worker.rules.calibration.labels import Floats
from worker.rules.refit.area import Comparison, area, compare
from worker.rules.refit.correction import TERMS
from worker.rules.refit.lesson import Lesson, TaughtSentence, lesson_of

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 4)),
    min_size=2,
    max_size=30,
)


def sentence(score: float, unsupported: bool, probability: float = 1.0, cluster: int = 0) -> TaughtSentence:  # noqa: FBT001 - a row
    return TaughtSentence(score, (0.0,) * len(TERMS), unsupported, probability, cluster, 0.0)


@given(rows=ROWS)
def test_the_area_is_the_weighted_share_of_pairs_in_the_right_order(
    rows: list[tuple[int, int, bool, float, int]],
) -> None:
    lesson = lesson_of([sentence(one, bad, probability, at) for one, _, bad, probability, at in rows])
    assume(0 < lesson.unsupported.sum() < len(lesson))
    pairs = [
        (1 / bad[3] / good[3], 1.0 if good[0] > bad[0] else 0.5 if good[0] == bad[0] else 0.0)
        for bad in rows
        if bad[2]
        for good in rows
        if not good[2]
    ]
    expected = sum(weight * right for weight, right in pairs) / sum(weight for weight, _ in pairs)
    assert area(lesson, lesson.scores) == pytest.approx(expected)


@given(rows=ROWS)
def test_a_ranking_is_no_better_than_itself_and_differences_are_even(
    rows: list[tuple[int, int, bool, float, int]],
) -> None:
    lesson = lesson_of([sentence(one + other / 10, bad, probability, at) for one, other, bad, probability, at in rows])
    assume(0 < lesson.unsupported.sum() < len(lesson))
    one, other = np.floor(lesson.scores), lesson.scores % 1
    assert compare(lesson, one, one) == Comparison(0.0, 0.0)
    there, back = compare(lesson, one, other), compare(lesson, other, one)
    assert there.difference == pytest.approx(-back.difference)
    assert there.standard_error == pytest.approx(back.standard_error)


def noise(seed: int, count: int = 200) -> tuple[Lesson, Floats, Floats]:
    rng = np.random.default_rng(seed)
    bad = rng.random(count) < 0.3
    lesson = lesson_of([sentence(float(place), bool(one), cluster=place // 2) for place, one in enumerate(bad)])
    truth = -lesson.unsupported.astype(float)
    # What the two sentences of an answer have in common goes into both.
    shared = np.repeat(rng.normal(size=(2, count // 2)), 2, axis=1)[:, lesson.places]
    one, other = truth + shared + rng.normal(size=(2, count))
    return lesson, one, other


def test_the_standard_error_is_what_differences_deviate_by() -> None:
    found = [compare(*noise(seed)) for seed in range(300)]
    deviation = np.std([one.difference for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(deviation, rel=0.15)


def test_sentences_that_say_the_same_do_not_make_it_surer() -> None:
    lesson, one, other = noise(0)
    alone = compare(lesson, one, other)
    twice = np.concatenate([np.arange(len(lesson)), np.arange(len(lesson))])
    doubled = compare(lesson.where(twice), one[twice], other[twice])
    assert doubled.difference == pytest.approx(alone.difference)
    assert doubled.standard_error == pytest.approx(alone.standard_error)


def test_better_and_worse_are_beyond_the_standard_errors() -> None:
    assert Comparison(0.02, 0.01).is_better(1.645)
    assert not Comparison(0.01, 0.01).is_better(1.645)
    assert Comparison(-0.02, 0.01).is_worse(1.645)
    assert not Comparison(0.0, 0.0).is_better(1.645)
    assert not Comparison(0.0, 0.0).is_worse(1.645)


def test_values_go_back_to_the_order_that_labels_came_in() -> None:
    labels = [replace(sentence(float(score), score > 1), cluster=9 - score) for score in (2, 0, 3, 1)]
    lesson = lesson_of(labels)
    assert lesson.in_their_order(lesson.scores) == (2.0, 0.0, 3.0, 1.0)
