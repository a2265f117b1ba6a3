"""Verdicts against a threshold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from gasp_core.detectors.fused_model import Term
from worker.rules.calibration.curve import Curve
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.verdict import Threshold, judge, threshold_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULT = Threshold(1, None, 1, flag_below=0.3, attribute_below=0.5, learned_from="seeded", activated_at=NOW)
OWN = Threshold(2, "bot", 3, flag_below=0.1, attribute_below=0.1, learned_from="manual", activated_at=NOW)


def test_a_sentence_below_the_threshold_is_flagged_and_one_on_it_is_not() -> None:
    verdict = judge((0.29, 0.3, None, 0.9), DEFAULT)
    assert verdict.flagged == (True, False, None, False)
    assert (verdict.scores, verdict.lowest_score) == ((0.29, 0.3, None, 0.9), 0.29)


def test_an_answer_is_attributed_when_its_lowest_sentence_is_below_the_bound() -> None:
    assert judge((0.49, 2.0), DEFAULT).wants_attribution
    assert not judge((0.5, 2.0), DEFAULT).wants_attribution


def test_an_answer_without_scores_is_neither_flagged_nor_attributed() -> None:
    verdict = judge((None, None), DEFAULT)
    assert (verdict.scores, verdict.flagged, verdict.wants_attribution) == ((None, None), (None, None), False)
    assert verdict.lowest_score is None


def test_a_curve_says_how_likely_each_scored_sentence_is_unsupported() -> None:
    learned = replace(OWN, curve=Curve((0.0, 1.0), (0.8, 0.2)))
    assert judge((-1.0, 0.5, None, 9.0), learned).probabilities == (0.8, 0.5, None, 0.2)
    assert judge((0.5, None), OWN).probabilities == (None, None)


def test_what_reviewers_taught_is_added_before_a_score_is_compared() -> None:
    taught = replace(DEFAULT, correction=Correction((Term("coverage", 0.0, 1.0, 0.25),)))
    terms = [tuple(coverage if name == "coverage" else 9.0 for name in TERMS) for coverage in (1.0, -1.0)]
    verdict = judge((0.25, 0.375, None, 0.25), taught, [*terms, None, None])
    assert verdict.scores == (0.5, 0.125, None, 0.25)
    assert verdict.corrections == (0.25, -0.25, None, None)
    assert verdict.flagged == (False, True, None, True)
    assert verdict.terms == (*terms, None, None)


def test_without_a_correction_the_terms_change_nothing() -> None:
    plain, kept = judge((0.1, None), DEFAULT), judge((0.1, None), DEFAULT, [(1.0,) * len(TERMS), None])
    assert kept == replace(plain, terms=kept.terms)
    assert kept.corrections == (None, None)


def test_an_app_has_its_own_threshold_or_the_default() -> None:
    thresholds = {None: DEFAULT, "bot": OWN}
    assert threshold_for("bot", thresholds) is OWN
    assert threshold_for("other", thresholds) is DEFAULT
    assert (DEFAULT.name, OWN.name) == ("*/1", "bot/3")
