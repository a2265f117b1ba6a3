"""What a worker judges by: which detector is chosen, and what it makes of a grounding."""

from __future__ import annotations

import pytest

from gasp_core.fused import shipped_fused
from gasp_core.grounding import Exchange, Passage
from gasp_core.identity import ScorerIdentity
from gasp_core.model import LanguageModel
from gasp_core.scorer import GroundingScorer
from worker.errors import SettingsError
from worker.settings.detectors import DETECTOR_NAMES, GAP, JSD, choose_detector

KNOWN = shipped_fused().scorers[0]
OTHER = ScorerIdentity("Other-7B", "abc", "bfloat16", "plain-1", "gasp-2")
EXCHANGE = Exchange(
    "When does it open?",
    (Passage("hours", "The museum opens at nine."), Passage("dogs", "Dogs must stay outside.")),
    "The museum opens at nine.\n\n# Owners\n\nThe Duke of Belmora owned 12 of them.",
)


def test_without_a_choice_it_is_fused_where_the_coefficients_are_for_the_scorer_and_the_gap_elsewhere() -> None:
    assert choose_detector("auto", KNOWN).name == "fused"
    assert choose_detector("auto", OTHER) is GAP


def test_masked_attribution_makes_no_difference_to_the_two_passes_that_fused_reads(tiny_model: LanguageModel) -> None:
    exact, masked = (GroundingScorer(tiny_model, masked=masked) for masked in (False, True))
    assert exact.score([EXCHANGE]) == masked.score([EXCHANGE])
    assert {one.method for one in shipped_fused().scorers} == {exact.identity.method, masked.identity.method}


def test_what_was_asked_for_is_taken() -> None:
    assert choose_detector("gap", KNOWN) is GAP
    assert choose_detector("jsd", OTHER) is JSD
    assert choose_detector("fused", KNOWN).name == "fused"


def test_fused_is_refused_for_another_scorer_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"^GASP_DETECTOR: .*SmolLM2.*; gap and jsd take any model$"):
        choose_detector("fused", OTHER)


def test_each_detector_is_a_scorer_identity_of_its_own_and_the_gap_keeps_the_scorers() -> None:
    labels = {choose_detector(name, KNOWN).judging(KNOWN).label for name in DETECTOR_NAMES}
    assert len(labels) == len(DETECTOR_NAMES)
    assert GAP.judging(OTHER) == OTHER
    assert choose_detector("fused", KNOWN).judging(KNOWN).method == "gasp-2 fused-1"


def test_a_sentence_has_a_score_whenever_it_has_a_gap(tiny_model: LanguageModel) -> None:
    (grounding,) = GroundingScorer(tiny_model).score([EXCHANGE])
    gaps = tuple(one.gap for one in grounding.sentences)
    assert [gap is None for gap in gaps] == [False, True, False]
    found = {name: choose_detector(name, KNOWN).scores(EXCHANGE, grounding) for name in DETECTOR_NAMES}
    assert found["gap"] == gaps
    assert found["jsd"] == tuple(one.jsd_no_context for one in grounding.sentences)
    assert found["fused"] == shipped_fused().scores(EXCHANGE, grounding)
    assert all([score is None for score in scores] == [False, True, False] for scores in found.values())
