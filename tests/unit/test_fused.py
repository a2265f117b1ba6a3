from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.detectors.directed import directed_logistic, directed_terms
from gasp_core.detectors.fused import FUSED, FUSED_FREE
from gasp_core.detectors.fused_model import (
    DIRECTIONS,
    EQUAL_COEFFICIENT,
    Fused,
    equal_fused,
    fused_features,
    shipped_fused,
)
from gasp_core.detectors.readout.terms import sentence_terms
from gasp_core.grounding import (
    AnswerGrounding,
    Exchange,
    Method,
    Passage,
    SentenceGrounding,
    SentenceSkip,
    Truncation,
)
from gasp_core.identity import ScorerIdentity
from gasp_core.text.sentences import split_answer

ANSWER = "The museum opens at nine. It belongs to Duke Belmora. Yes. The museum opens at nine."
EXCHANGE = Exchange("When?", (Passage("1", "The museum opens at nine."),), ANSWER)
OTHER = ScorerIdentity(model="other", revision="1", dtype="float32", template="plain-1", method="gasp-3")


def grounding(gaps: tuple[float | None, ...] = (2.0, 0.0, None, 2.0)) -> AnswerGrounding:
    sentences = tuple(
        SentenceGrounding(
            index=index,
            sentence=sentence,
            n_tokens=6,
            gap=gap,
            jsd_no_context=None if gap is None else 0.1,
            surprisal=None if gap is None else 1.0,
            skip_reason=SentenceSkip.TOO_SHORT if gap is None else None,
        )
        for index, (sentence, gap) in enumerate(zip(split_answer(ANSWER), gaps, strict=True))
    )
    return AnswerGrounding(Method.TWO_PASS, sentences, (), Truncation(0, 0, 0, 0))


def shipped() -> Fused:
    return shipped_fused()


def test_a_sentence_that_invents_scores_lower_and_one_without_a_gap_has_no_score() -> None:
    first, invented, short, last = FUSED.scores(AnswerEvidence.of(EXCHANGE, grounding()))
    assert short is None
    assert first is not None
    assert invented is not None
    assert last is not None
    assert invented < last <= first or invented < first <= last


def test_the_features_are_those_that_are_documented() -> None:
    first, invented, short, _ = fused_features(EXCHANGE, grounding())
    assert short is None
    assert first == pytest.approx((0.1, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, math.log(6)))
    # Belong, duke and belmora are new, two of them names that begin nothing; its scored neighbours say nothing new.
    assert invented == pytest.approx((0.1, 0.0, 1.0, 1.0, 0.0, math.log1p(2), 0.0, math.log(6)))


def test_a_gap_beyond_the_bounds_says_no_more() -> None:
    far, edge = (FUSED.scores(AnswerEvidence.of(EXCHANGE, grounding((gap, 0.0, None, 2.0))))[0] for gap in (50.0, 3.0))
    assert far == edge


def test_every_coefficient_that_ships_has_its_direction() -> None:
    terms = shipped().terms
    assert [term.name for term in terms] == list(DIRECTIONS)
    assert all(term.coefficient * DIRECTIONS[term.name] >= 0 for term in terms)
    assert all(term.deviation > 0 for term in terms)


def test_coefficients_are_for_the_scorers_that_they_were_learned_from_and_others_are_standardised() -> None:
    known = shipped().scorers[0]
    for detector in (FUSED, FUSED_FREE):
        assert detector.is_fitted_to(known)
        assert not detector.is_fitted_to(replace(known, template="chat-1"))
        assert not detector.is_fitted_to(OTHER)
        assert detector.admits(OTHER)


def test_equal_weights_are_those_terms_each_in_its_direction() -> None:
    equal = equal_fused()
    assert [replace(term, coefficient=0.0) for term in equal.terms] == [
        replace(term, coefficient=0.0) for term in shipped().terms
    ]
    assert [term.coefficient for term in equal.terms] == [EQUAL_COEFFICIENT * sign for sign in DIRECTIONS.values()]


def test_the_file_says_what_it_was_learned_from() -> None:
    fused = shipped()
    assert Fused.from_json(fused.to_json()) == fused
    assert {"data", "date", "sentences", "cross_validated_auc"} <= fused.provenance.keys()


def made_up(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(7)
    readings = chance.normal(size=(rows, len(DIRECTIONS)))
    odds = readings @ np.array([1.0, 0.5, -1.0, -0.5, 0.0, 0.0, 0.0, 0.8])
    return readings, chance.random(rows) > 1 / (1 + np.exp(-odds))


def test_learning_agrees_with_scikit_learn_where_no_direction_is_in_the_way() -> None:
    from sklearn.linear_model import LogisticRegression

    readings, unsupported = made_up()
    readings[:, -1] *= -1
    standardised = (readings - readings.mean(axis=0)) / readings.std(axis=0)
    terms, intercept = directed_terms(readings, unsupported)
    theirs = LogisticRegression(C=1 / (1e-3 * len(readings)), tol=1e-8).fit(standardised, ~unsupported)
    free = [index for index, term in enumerate(terms) if term.coefficient]
    assert len(free) >= 5
    assert intercept == pytest.approx(theirs.intercept_[0], abs=0.02)
    for index in free:
        assert terms[index].coefficient == pytest.approx(theirs.coef_[0, index], abs=0.05)


def test_a_term_that_would_turn_against_its_direction_is_left_out() -> None:
    readings, unsupported = made_up()
    terms, _ = directed_terms(readings, unsupported)
    assert terms[-1].coefficient == 0.0
    assert directed_logistic(readings, unsupported)(readings)[unsupported].mean() < 0.5


def test_terms_that_somebody_has_read_already_are_not_read_again() -> None:
    terms = sentence_terms(EXCHANGE, grounding())
    plain = FUSED.read(AnswerEvidence.of(EXCHANGE, grounding()))
    assert FUSED.read(AnswerEvidence.of(EXCHANGE, grounding(), terms)) == plain
    others = [None if values is None else tuple(value + 1 for value in values) for values in terms]
    assert [one.values for one in FUSED.read(AnswerEvidence.of(EXCHANGE, grounding(), others))] == [
        () if values is None else values[: len(DIRECTIONS)] for values in others
    ]


def test_terms_are_given_in_the_order_of_their_names() -> None:
    known = sentence_terms(EXCHANGE, grounding())
    names = ("coverage", "gap")
    wanted = [None if values is None else (values[-1], values[1]) for values in known]
    assert sentence_terms(EXCHANGE, grounding(), names) == wanted
    assert sentence_terms(EXCHANGE, grounding(), names, known) == wanted
