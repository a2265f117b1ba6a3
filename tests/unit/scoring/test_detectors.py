"""What the detectors make of what a tiny model says."""

from __future__ import annotations

import pytest

from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.detectors.fused_model import fused_features, shipped_fused
from gasp_core.detectors.leave_one_out import MAX_DROP
from gasp_core.detectors.readout.detector import READOUT
from gasp_core.detectors.registry import DETECTORS
from gasp_core.detectors.two_pass import GAP, TWO_PASS
from gasp_core.errors import DetectorError
from gasp_core.grounding import Exchange, Method, Passage
from gasp_core.model import LanguageModel
from gasp_core.scorer import GroundingScorer
from tests.alike import assert_alike

EXCHANGE = Exchange(
    "When does it open?",
    (Passage("hours", "The museum opens at nine."), Passage("dogs", "Dogs must stay outside.")),
    "The museum opens at nine.\n\n# Owners\n\nThe Duke of Belmora owned 12 of them.",
)
# The readout that comes along reads the packaged model alone; test_train_command has one of a tiny model.
STORED = {name: one for name, one in DETECTORS.items() if one.version is not None and one is not READOUT}


def test_a_sentence_has_a_score_whenever_it_has_a_gap(tiny_model: LanguageModel) -> None:
    (grounding,) = GroundingScorer(tiny_model).score([EXCHANGE])
    gaps = tuple(one.gap for one in grounding.sentences)
    assert [gap is None for gap in gaps] == [False, True, False]
    found = {name: detector.scores(AnswerEvidence.of(EXCHANGE, grounding)) for name, detector in STORED.items()}
    assert found["gap"] == gaps
    assert found["jsd"] == tuple(one.jsd_no_context for one in grounding.sentences)
    features = fused_features(EXCHANGE, grounding)
    assert found["fused"] == tuple(None if one is None else shipped_fused().log_odds(one) for one in features)
    assert all([score is None for score in scores] == [False, True, False] for scores in found.values())


def test_leave_one_out_tells_what_two_passes_do_and_two_passes_do_not_tell_of_chunks(tiny_model: LanguageModel) -> None:
    scorer = GroundingScorer(tiny_model)
    (detailed,) = scorer.score([EXCHANGE], Method.LEAVE_ONE_OUT)
    assert GAP.scores(AnswerEvidence.of(EXCHANGE, detailed)) == tuple(one.gap for one in detailed.sentences)
    drops = [max((drop.drop for drop in one.drops), default=None) for one in detailed.sentences]
    assert MAX_DROP.scores(AnswerEvidence.of(EXCHANGE, detailed)) == tuple(drops)
    (plain,) = scorer.score([EXCHANGE])
    with pytest.raises(ValueError, match="leave-one-out is needed"):
        MAX_DROP.scores(AnswerEvidence.of(EXCHANGE, plain))


def test_a_detector_that_has_to_learn_gives_no_score_by_itself(tiny_model: LanguageModel) -> None:
    (grounding,) = GroundingScorer(tiny_model).score([EXCHANGE])
    with pytest.raises(DetectorError, match="two-pass has to learn before it scores"):
        TWO_PASS.scores(AnswerEvidence.of(EXCHANGE, grounding))


def test_masked_attribution_makes_no_difference_to_the_two_passes_that_fused_reads(tiny_model: LanguageModel) -> None:
    exact, masked = (GroundingScorer(tiny_model, masked=masked) for masked in (False, True))
    assert_alike(exact.score([EXCHANGE]), masked.score([EXCHANGE]))
    assert {one.method for one in shipped_fused().scorers} == {exact.identity.method, masked.identity.method}
