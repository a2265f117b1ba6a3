"""What reviewers teach: a correction is found where there is one, and refused for a named reason where there is not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from worker.rules.refit.correction import TERMS
from worker.rules.refit.lesson import TaughtSentence
from worker.rules.refit.refit import Refit, RefitOutcome, refit


def taught(count: int, effect: float, *, seed: int = 0, per_answer: int = 4) -> list[TaughtSentence]:
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
            place // per_answer,
            float(place),
        )
        for place in range(count)
    ]


def test_a_correction_that_is_there_is_found() -> None:
    found = refit(taught(400, 2.0))
    assert (found.outcome, found.reason) == (RefitOutcome.NEW, "better")
    assert found.correction is not None
    first, *others = found.correction.terms
    assert first.coefficient > 1
    assert max(abs(one.coefficient) for one in others) < first.coefficient / 4


def test_nothing_is_added_where_nothing_is_missing() -> None:
    found = refit(taught(400, 0.0))
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.UNCHANGED, "no_better", None)


def test_the_order_of_labels_is_nothing() -> None:
    labels = taught(300, 2.0)
    shuffled = labels.copy()
    random.Random(1).shuffle(shuffled)
    one, other = refit(labels), refit(shuffled)
    assert replace(one, scores=()) == replace(other, scores=())
    assert dict(zip(labels, one.scores, strict=True)) == dict(zip(shuffled, other.scores, strict=True))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], "too_few_labels"),
        (taught(99, 2.0), "too_few_labels"),
        ([replace(one, unsupported=False) for one in taught(200, 2.0)], "too_few_unsupported"),
        ([replace(one, unsupported=True) for one in taught(200, 2.0)], "too_few_supported"),
        (taught(200, 2.0, per_answer=20), "too_few_interactions"),
        ([replace(one, score=1.0) for one in taught(200, 2.0)], "no_spread"),
        ([replace(one, score=float("nan")) for one in taught(200, 2.0)], "not_finite"),
        ([replace(one, probability=0.0) for one in taught(200, 2.0)], "bad_probability"),
    ],
)
def test_too_little_is_refused_for_a_named_reason(labels: list[TaughtSentence], reason: str) -> None:
    found: Refit = refit(labels)
    assert (found.outcome, found.reason, found.correction) == (RefitOutcome.REFUSED, reason, None)
    assert len(found.scores) == len(labels)
