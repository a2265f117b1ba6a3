"""What reviewers teach: a correction is found where there is one, and refused for a named reason where there is not."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_core.detectors.fused_model import Term
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.refit.lesson import TaughtSentence, lesson_of
from worker.rules.refit.refit import Refit, RefitOutcome, Taught, out_of_fold, refit
from worker.rules.refit.ridge import LEAST_DEVIATIONS, fit, usual


def taught(count: int, effect: float, *, seed: int = 0, per_answer: int = 4, start: int = 0) -> list[TaughtSentence]:
    """Sentences whose first term adds ``effect`` to the log-odds of being grounded for each deviation."""
    rng = np.random.default_rng(seed)
    terms, scores = rng.normal(size=(count, len(TERMS))), 1.5 + 1.5 * rng.normal(size=count)
    unsupported = rng.random(count) > 1 / (1 + np.exp(-(scores + effect * terms[:, 0])))
    return [
        TaughtSentence(
            float(scores[place]),
            tuple(terms[place].tolist()),
            bool(unsupported[place]),
            1.0,
            f"{seed}/{place // per_answer}",
            float(start + place),
        )
        for place in range(count)
    ]


def in_force(effect: float, learned_until: float = -1.0) -> Taught:
    """A correction of the first term alone."""
    return Taught(Correction((Term(TERMS[0], 0.0, 1.0, effect),)), learned_until)


def test_a_correction_that_is_there_is_found() -> None:
    found = refit(taught(3_000, 2.0))
    assert (found.outcome, found.reason) == (RefitOutcome.NEW, "better")
    assert found.correction is not None
    first, *others = found.correction.terms
    assert first.coefficient == pytest.approx(2.0, abs=0.5)
    assert max(abs(one.coefficient) for one in others) < first.coefficient / 8


def test_few_labels_are_held_back_more_than_many() -> None:
    few, many = (fit(lesson, usual(lesson)) for lesson in map(lesson_of, (taught(100, 2.0), taught(1_000, 2.0))))
    assert 0 < few.terms[0].coefficient < many.terms[0].coefficient < 2.0


def test_what_what_ships_may_not_read_is_held_back_more() -> None:
    first, last = TERMS[0], TERMS[-1]
    labels = taught(400, 2.0)
    swapped = [replace(one, terms=(*one.terms[:0:-1], one.terms[0])) for one in labels]
    learned = [fit(lesson, usual(lesson)) for lesson in map(lesson_of, (labels, swapped))]
    shipped, extra = (
        next(abs(term.coefficient) for term in one.terms if term.name == name)
        for one, name in zip(learned, (first, last), strict=True)
    )
    assert extra < shipped / 1.5


def test_nothing_is_added_where_nothing_is_missing() -> None:
    found = refit(taught(400, 0.0))
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.UNCHANGED, "no_better", None)
    assert found.scores == tuple(one.score for one in taught(400, 0.0))


def test_a_score_that_tells_nothing_bounds_what_is_added() -> None:
    labels = [replace(one, score=-one.score) for one in taught(1_000, 2.0)]
    found = refit(labels)
    assert found.correction is not None
    assert all(math.isfinite(term.coefficient) for term in found.correction.terms)
    assert abs(found.correction.terms[0].coefficient) < 20


def test_a_term_that_is_nearly_the_same_in_all_labels_does_not_explode_in_the_traffic() -> None:
    flat = [replace(one, terms=(1e-4 * one.terms[0], *one.terms[1:])) for one in taught(400, 2.0)]
    lesson = lesson_of(flat)
    assert usual(lesson)[1][0] == LEAST_DEVIATIONS[0]
    assert abs(fit(lesson, usual(lesson)).of((1.0, *[0.0] * (len(TERMS) - 1)))) < 1


@pytest.mark.parametrize("effect", [0.0, 2.0])
def test_the_order_of_labels_is_nothing(effect: float) -> None:
    labels = taught(300, effect)
    shuffled = labels.copy()
    random.Random(1).shuffle(shuffled)
    one, other = refit(labels), refit(shuffled)
    assert replace(one, scores=()) == replace(other, scores=())
    assert dict(zip(labels, one.scores, strict=True)) == dict(zip(shuffled, other.scores, strict=True))


@pytest.mark.parametrize("cluster", ["0/0", "0/37"])
def test_what_is_scored_was_learned_from_other_interactions(cluster: str) -> None:
    labels = taught(300, 2.0)
    changed = [replace(one, unsupported=one.unsupported ^ (one.cluster == cluster)) for one in labels]
    lesson, other = lesson_of(labels), lesson_of(changed)
    own = np.array([labels[place].cluster == cluster for place in lesson.places])
    before, after = out_of_fold(lesson), out_of_fold(other)
    assert own.sum() == 4
    assert (before[own] == after[own]).all()
    assert (before[~own] != after[~own]).any()


def test_a_label_of_more_weight_counts_for_more() -> None:
    one_way, other_way = taught(300, 2.0), taught(300, -2.0, seed=1)
    seldom = [replace(one, probability=0.1) for one in one_way]
    equal, weighted = (lesson_of([*part, *other_way]) for part in (one_way, seldom))
    assert abs(fit(equal, usual(equal)).terms[0].coefficient) < 0.3
    assert fit(weighted, usual(weighted)).terms[0].coefficient > 0.3


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], "too_few_labels"),
        (taught(99, 2.0), "too_few_labels"),
        ([replace(one, unsupported=False) for one in taught(200, 2.0)], "too_few_unsupported"),
        ([replace(one, unsupported=True) for one in taught(200, 2.0)], "too_few_supported"),
        (taught(200, 2.0, per_answer=20), "too_few_interactions"),
        ([*taught(150, 2.0), *(replace(one, probability=1e-4) for one in taught(5, 2.0))], "too_little_effective"),
        ([replace(one, score=1.0) for one in taught(200, 2.0)], "no_spread"),
        ([replace(one, score=float("nan")) for one in taught(200, 2.0)], "not_finite"),
        ([replace(one, terms=(float("inf"),) * len(TERMS)) for one in taught(200, 2.0)], "not_finite"),
        ([replace(one, terms=one.terms[:3]) for one in taught(200, 2.0)], "not_finite"),
        ([replace(one, probability=0.0) for one in taught(200, 2.0)], "bad_probability"),
        ([replace(one, probability=1.5) for one in taught(200, 2.0)], "bad_probability"),
    ],
)
def test_too_little_is_refused_for_a_named_reason_and_changes_nothing(
    labels: list[TaughtSentence], reason: str
) -> None:
    found: Refit = refit(labels)
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.REFUSED, reason, None)
    assert len(found.scores) == len(labels)
    kept = in_force(1.0)
    assert refit(labels, kept).correction is kept.correction


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1e-300, 1e-9, 1.0, 1e4, 1e8, 1e12]),
    spread=st.sampled_from([0.0, 3.0, 300.0]),
    rare=st.floats(0, 1),
    in_force_too=st.booleans(),
)
@settings(max_examples=40)
def test_odd_data_raises_nothing_and_gives_finite_numbers(
    seed: int, size: float, spread: float, rare: float, *, in_force_too: bool
) -> None:
    rng = np.random.default_rng(seed)
    labels = [
        TaughtSentence(
            float(rng.normal() * size),
            tuple((rng.standard_t(1, len(TERMS)) * rng.choice([0.0, 1.0, size], len(TERMS))).tolist()),
            bool(rng.random() < rare),
            float(np.exp(-spread * rng.random())),
            int(rng.integers(0, 60)),
            float(rng.integers(0, 9)),
        )
        for _ in range(150)
    ]
    found = refit(labels, in_force(1.0, 4.0) if in_force_too else None)
    assert all(map(math.isfinite, found.scores))
    assert all(map(math.isfinite, found.numbers.values()))
    if found.outcome is RefitOutcome.NEW:
        assert found.correction is not None


def test_a_good_correction_in_force_stays() -> None:
    kept = in_force(2.0)
    found = refit(taught(300, 2.0), kept)
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.UNCHANGED, "no_better", kept.correction)
    assert found.scores[0] == pytest.approx(taught(300, 2.0)[0].score + 2.0 * taught(300, 2.0)[0].terms[0])


def test_a_correction_that_harms_is_withdrawn_even_if_there_is_no_better_one() -> None:
    labels = taught(300, 0.0)
    found = refit(labels, in_force(2.0))
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.WITHDRAWN, "worse_than_shipped", None)
    assert found.scores == tuple(one.score for one in labels)
    assert found.numbers["auc_champion"] < found.numbers["auc_shipped"]


def test_a_better_correction_takes_the_place_of_the_one_in_force() -> None:
    found = refit(taught(600, 2.0), in_force(-1.0))
    assert (found.outcome, found.reason) == (RefitOutcome.NEW, "better")
    assert found.correction is not None
    assert found.correction.terms[0].coefficient > 0


def test_what_the_one_in_force_was_learned_from_does_not_speak_for_it() -> None:
    """On its own labels a correction of noise looks good; learned without their interactions it does not."""
    labels = taught(120, 0.0)
    lesson = lesson_of(labels)
    learned = fit(lesson, usual(lesson))
    honest = refit(labels, Taught(learned, max(one.labelled_at for one in labels)))
    flattered = refit(labels, Taught(learned, -1.0))
    assert honest.numbers["auc_champion"] < flattered.numbers["auc_champion"]


def test_the_figures_name_what_was_compared() -> None:
    found = refit(taught(400, 2.0))
    assert found.numbers["n_labels"] == 400
    assert found.numbers["n_interactions"] == 100
    assert found.numbers["auc_champion"] == found.numbers["auc_shipped"]
    for name in ("auc_shipped", "auc_challenger", "auc_lexical"):
        assert 0 <= found.numbers[name] <= 1
    assert found.numbers["difference"] == pytest.approx(found.numbers["auc_challenger"] - found.numbers["auc_champion"])
