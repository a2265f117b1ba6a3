"""The reference set, the figures of a scorer over it, and a detector that goes by them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.detectors.fused import FUSED, FUSED_FREE
from gasp_core.detectors.fused_model import DIRECTIONS, equal_fused, shipped_fused
from gasp_core.detectors.readout.detector import READOUT
from gasp_core.detectors.standard.figures import MIN_SENTENCES, figures_of
from gasp_core.detectors.standard.linked import linked
from gasp_core.detectors.standard.reference import PACKAGED_FIGURES, reference_exchanges
from gasp_core.detectors.standard.standardise import standardised
from gasp_core.detectors.two_pass import GAP
from gasp_core.errors import ModelUnsupported
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.identity import ScorerIdentity
from gasp_core.model import LanguageModel
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from gasp_core.text.languages import language_of
from tests.soak.scorer import SoakScorer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path))
    return tmp_path


class Shifted(SoakScorer):
    """Says the same as another scorer on a scale of its own, and counts how often it is asked."""

    def __init__(self, shift: float, scale: float, spread: float = 1.0) -> None:
        super().__init__(0.0)
        self.shift, self.scale, self.spread = shift, scale, spread
        self.asked = 0

    @property
    def identity(self) -> ScorerIdentity:
        return replace(super().identity, model=f"{self.shift} {self.scale} {self.spread}")

    def score(self, exchanges: Sequence[Exchange], *_: object) -> list[AnswerGrounding]:
        self.asked += len(exchanges)
        return [self._changed(one) for one in super().score(exchanges)]

    def _changed(self, grounding: AnswerGrounding) -> AnswerGrounding:
        sentences = tuple(
            replace(
                one,
                # Within what fused cuts gaps to.
                gap=self.shift + self.scale * self.spread * math.sin(one.gap),
                jsd_no_context=0.2 + self.scale * self.spread * 0.1 * math.cos(one.gap),
            )
            if one.gap is not None
            else one
            for one in grounding.sentences
        )
        return replace(grounding, sentences=sentences)


def test_the_reference_set_has_several_kinds_lengths_and_languages() -> None:
    exchanges = reference_exchanges()
    assert len(exchanges) == 36
    passages = [len(exchange.passages) for exchange in exchanges]
    assert {1, 2, 3, 5} <= set(passages)
    lengths = sorted(len(exchange.answer) for exchange in exchanges)
    assert lengths[0] < 50 < 800 < lengths[-1]
    assert {"en", "de", "fr", "es", "ja", "hi"} <= {language_of(exchange.answer) for exchange in exchanges}


def test_scores_do_not_depend_on_the_scale_of_a_scorer() -> None:
    exchange = reference_exchanges()[5]
    found = []
    for scorer in (Shifted(1.0, 1.0), Shifted(0.4, 0.3)):
        detector = standardised(FUSED_FREE, scorer)
        found.append(detector.scores(AnswerEvidence.of(exchange, scorer.score([exchange])[0])))
    assert found[0] == pytest.approx(found[1])
    assert len(set(found[0])) > 1


def test_for_the_figures_of_the_packaged_scorer_the_terms_stay_as_they_are() -> None:
    for shipped in (shipped_fused(), equal_fused()):
        for term, known in zip(linked(shipped, PACKAGED_FIGURES).terms, shipped.terms, strict=True):
            assert (term.mean, term.deviation) == pytest.approx((known.mean, known.deviation))
            assert term.coefficient == known.coefficient


def test_a_value_as_far_from_usual_counts_as_much_and_one_that_never_differs_nothing() -> None:
    figures = {"jsd_no_context": (0.3, 0.02), "gap": (5.0, 0.0), "length": PACKAGED_FIGURES["length"]}
    terms = dict(zip(DIRECTIONS, linked(equal_fused(), figures).terms, strict=True))
    known = dict(zip(DIRECTIONS, equal_fused().terms, strict=True))
    mean, deviation = PACKAGED_FIGURES["jsd_no_context"]
    for deviations in (-2.0, 0.0, 1.5):
        here = terms["jsd_no_context"].log_odds(0.3 + deviations * 0.02)
        assert here == pytest.approx(known["jsd_no_context"].log_odds(mean + deviations * deviation))
    assert terms["gap"].log_odds(7.0) == 0.0
    assert terms["novel_words"] == known["novel_words"]


def test_a_detector_is_as_it_is_for_scorers_that_it_was_fitted_to_and_standardised_for_others() -> None:
    scorer = Shifted(1.0, 1.0)
    assert standardised(GAP, scorer) is GAP
    assert scorer.asked == 0
    found = standardised(FUSED, scorer)
    assert (found.name, found.version, found.bounds) == ("fused", "fused-2-ref-1", FUSED.bounds)
    assert found.judging(scorer.identity).method == "soak-1 fused-2-ref-1"
    assert found.admits(replace(scorer.identity, method="soak-1 context-64"))
    assert not found.admits(Shifted(1.0, 2.0).identity)
    with pytest.raises(ModelUnsupported, match="readout was fitted to the scores of SmolLM2"):
        standardised(READOUT, scorer)


def test_a_scorer_is_asked_once_and_what_it_said_is_kept(cache: Path) -> None:
    scorer = Shifted(1.0, 1.0)
    tracked: list[Exchange] = []

    def track(exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
        for exchange in exchanges:
            tracked.append(exchange)
            yield exchange

    figures = figures_of(scorer, track)
    assert tracked == list(reference_exchanges())
    assert figures_of(scorer) == figures
    assert scorer.asked == 36
    assert figures_of(Shifted(2.0, 1.0)) != figures
    for file in (cache / "figures").iterdir():
        file.write_bytes(b"broken")
    assert figures_of(scorer) == figures
    assert scorer.asked == 72


def test_where_nothing_can_be_kept_it_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").write_text("", encoding="utf-8")
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "a file"))
    scorer = Shifted(1.0, 1.0)
    assert figures_of(scorer) == figures_of(scorer)
    assert scorer.asked == 72


def test_a_scorer_that_always_says_the_same_is_judged_by_the_texts() -> None:
    scorer = Shifted(1.0, 1.0, spread=0.0)
    exchange = reference_exchanges()[1]
    scores = standardised(FUSED_FREE, scorer).scores(AnswerEvidence.of(exchange, scorer.score([exchange])[0]))
    assert all(score is not None and math.isfinite(score) for score in scores)


def test_a_model_is_standardised_by_what_it_reads(tiny_model: LanguageModel) -> None:
    scorer = GroundingScorer(tiny_model)
    figures = figures_of(scorer)
    assert figures.keys() == PACKAGED_FIGURES.keys()
    assert all(math.isfinite(mean) and deviation > 0 for mean, deviation in figures.values())


def test_limits_that_leave_too_little_of_the_reference_set_are_told(tiny_model: LanguageModel) -> None:
    with pytest.raises(ModelUnsupported, match=r"of the reference set, too few .* go by gap") as caught:
        figures_of(GroundingScorer(tiny_model, limits=Limits(max_answer_tokens=4)))
    assert int(str(caught.value).split("it scores ")[1].split()[0]) < MIN_SENTENCES
