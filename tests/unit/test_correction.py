"""What is added to a detector's score for an app."""

from __future__ import annotations

import pytest

from gasp_core.detectors.fused_model import Term
from worker.rules.refit.correction import TERMS, Correction

USUAL = dict.fromkeys(TERMS, 0.5)
LEARNED = Correction((Term("coverage", 0.5, 0.25, 1.5), Term("surprisal", 2.0, 1.0, -0.5)))


def values(**others: float) -> list[float]:
    return list((USUAL | others).values())


def test_a_sentence_with_usual_terms_keeps_its_score() -> None:
    assert LEARNED.of(values(coverage=0.5, surprisal=2.0)) == 0


def test_each_deviation_from_the_usual_adds_its_coefficient() -> None:
    assert LEARNED.of(values(coverage=1.0, surprisal=2.0)) == pytest.approx(3.0)
    assert LEARNED.of(values(coverage=0.5, surprisal=4.0)) == pytest.approx(-1.0)


def test_terms_that_are_not_read_change_nothing() -> None:
    assert LEARNED.of(values(gap=9.0)) == LEARNED.of(values())


def test_as_many_values_as_there_are_terms_are_needed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        LEARNED.of([0.5])


def test_it_is_read_back_as_it_was_stored() -> None:
    assert Correction.from_json(LEARNED.to_json()) == LEARNED


def test_a_term_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(ValueError, match="no term mood"):
        Correction.from_json(Correction((Term("mood", 0, 1, 1),)).to_json())
