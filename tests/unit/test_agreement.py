"""Krippendorff's alpha against the worked example of his paper, and by hand."""

from __future__ import annotations

from itertools import product

import pytest

from schemas.review_label import Label
from worker.rules.agreement import Agreement, Vote, agreements, krippendorff_alpha

# Four observers, twelve units, five values, data missing: "Computing Krippendorff's Alpha-Reliability" (2011), part C.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
EXAMPLE = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]
# The nominal example of the widely known table: three coders, fifteen units, four values, alpha 0.691.
CODERS = (
    (None, None, None, None, None, 3, 4, 1, 2, 1, 1, 3, 3, None, 3),
    (1, None, 2, 1, 3, 3, 4, 3, None, None, None, None, None, None, None),
    (None, None, 2, 1, 3, 4, 4, None, 2, 1, 1, 3, 3, None, 4),
)
KNOWN = [[value for value in unit if value is not None] for unit in zip(*CODERS, strict=True)]
VOTES = {
    Label.SUPPORTED: False,
    Label.NOT_A_CLAIM: False,
    Label.UNSUPPORTED: True,
    Label.PARTLY: True,
    Label.CANT_TELL: None,
}


@pytest.mark.parametrize(("units", "alpha"), [(EXAMPLE, 0.743), (KNOWN, 0.691)])
def test_alpha_is_that_of_the_worked_examples(units: list[list[int]], alpha: float) -> None:
    assert krippendorff_alpha(units) == pytest.approx(alpha, abs=0.0005)


def test_alpha_by_hand() -> None:
    # Ten votes in five pairs, four of which agree: observed 2/10. Five of each: expected 2 * 5 * 5 / (10 * 9).
    units = [(1, 1), (1, 1), (0, 0), (0, 0), (0, 1)]
    assert krippendorff_alpha(units) == pytest.approx(1 - (2 / 10) / (50 / 90))


def test_alpha_is_one_where_all_agree_and_below_zero_where_none_does() -> None:
    assert krippendorff_alpha([(0, 0), (1, 1)]) == 1
    assert (krippendorff_alpha([(0, 1), (1, 0)]) or 0) < 0


@pytest.mark.parametrize("units", [[], [(1,), (0,)], [(1, 1), (1, 1)]])
def test_alpha_is_unknown_without_two_values_in_pairs(units: list[tuple[int, ...]]) -> None:
    assert krippendorff_alpha(units) is None


def test_agreement_of_all_and_of_each_pair_by_app() -> None:
    words = {
        "ada": (Label.SUPPORTED, Label.UNSUPPORTED, Label.PARTLY),
        "bob": (Label.NOT_A_CLAIM, Label.PARTLY, Label.CANT_TELL),
        "cyd": (Label.UNSUPPORTED, Label.UNSUPPORTED, None),
    }
    votes = [
        Vote((app, "id", 1, index), who, said, VOTES[said])
        for app, who in product(("shop", "desk"), words)
        for index, said in enumerate(words[who])
        if said is not None and (app == "shop" or who == "ada")
    ]
    found = agreements(votes)
    assert [(one.app, one.pair, one.sentences, one.agreed) for one in found] == [
        ("shop", None, 2, 1),
        ("shop", ("ada", "bob"), 2, 2),
        ("shop", ("ada", "cyd"), 2, 1),
        ("shop", ("bob", "cyd"), 2, 1),
    ]
    assert found[1] == Agreement("shop", ("ada", "bob"), 2, 2, 1.0, found[1].alpha_of_words)
    assert (found[1].alpha_of_words or 0) < 0
