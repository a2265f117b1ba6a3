"""GASP on a tiny model, and the public interface that it shares with gasp-rag."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import gasp_core
from gasp_core import GASP, Case, Detection, SentenceResult, chunk_spans, evaluate, read_items, write_records
from gasp_core.detectors.fused import FUSED_FREE
from gasp_core.errors import DetectorError, ModelUnsupported
from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.model import LanguageModel
from gasp_core.scorer import GroundingScorer
from gasp_core.template import GASP_RAG, PLAIN
from tests.alike import assert_alike
from tests.models import save_model

CONTEXT = "The museum opens at nine. Tickets cost twelve euros. Dogs must stay outside. Children pay nothing."
ANSWER = "# Visit\n\nThe museum opens at nine. Tickets cost twelve euros."
QUESTION = "When does the museum open?"
PASSAGES = [" ", "Tickets cost twelve euros. Children pay nothing.", "", "The museum opens at nine."]

ITEMS: list[dict[str, Any]] = [
    {"context": CONTEXT, "answer": ANSWER, "query": QUESTION},
    {"passages": PASSAGES, "answer": "The museum opens at nine.", "question": QUESTION},
    {"context": CONTEXT, "answer": ""},
    {"context": ["Refunds are possible within 30 days. Bring the receipt."], "answer": "Bring the receipt with you."},
    {"context": None, "answer": "Nothing was retrieved for this."},
    {"context": CONTEXT, "answer": "Dogs must stay outside. Children pay nothing."},
]
FEATURES = {"gap", "jsd_noctx", "max_drop", "mean_drop", "top2_drop", "max_jsd", "n_tokens"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("detector") / "tiny"))


@pytest.fixture(scope="module")
def detector(folder: str) -> GASP:
    return GASP(folder, k_chunks=3, device="cpu")


@pytest.fixture(scope="module")
def economical(folder: str) -> GASP:
    return GASP(folder, economical=True, device="cpu")


def result(index: int, sensitivity: float | None, *, flagged: bool | None = None) -> SentenceResult:
    return SentenceResult(index, "Text.", sensitivity, -1, None, {}, flagged)


# The calls that the documentation of gasp-rag 0.2.1 shows, in its order. Left out: making a pandas table of the rows,
# because pandas is not installed here.


def test_what_gasp_rags_readme_shows_of_python_runs(folder: str, tmp_path: Path) -> None:
    gasp = gasp_core
    detector = gasp.GASP(folder, k_chunks=5)
    result = detector.detect(context=CONTEXT, answer=ANSWER, query=QUESTION)
    for s in result:
        if s.skip_reason is None:
            assert f"{s.sensitivity:+.2f}  {s.text}"
        if s.supporting_chunk:
            assert s.supporting_chunk[:80] in CONTEXT

    result = detector.detect(CONTEXT, ANSWER, threshold=99)
    assert [s.text for s in result.flagged()] == ["The museum opens at nine. ", "Tickets cost twelve euros."]

    gasp.GASP(
        folder,
        k_chunks=5,
        threshold=None,
        economical=False,
        sensitivity_feature="max_drop",
        max_ctx_tokens=1800,
        max_ans_tokens=256,
        device=None,
        dtype=None,
    )

    items = [{"context": CONTEXT, "answer": ANSWER, "query": QUESTION}, {"context": CONTEXT, "answer": ANSWER}]
    detections = detector.detect_batch(items, threshold=0.5)
    rows = [r for d in detections for r in d.to_records()]
    assert len(rows) == 6
    assert set(detections[0].summary()) == {"n_sentences", "n_flagged", "mean_sensitivity", "min_sensitivity"}

    gasp.write_records(items, str(tmp_path / "items.jsonl"))
    assert gasp.read_items(str(tmp_path / "items.jsonl")) == items

    scored = [s.sensitivity for d in detections for s in d if s.sensitivity is not None]
    m = gasp.evaluate([0, 1, 0, 1], [-sensitivity for sensitivity in scored], threshold=None)
    assert {"roc_auc", "pr_auc"} <= set(m)

    scores = gasp.Scorer(folder).score(gasp.Case.from_texts(CONTEXT, ANSWER, QUESTION))
    assert [score.text for score in scores] == [ANSWER[a:b] for a, b in gasp.sentence_spans(ANSWER)]


def test_every_public_name_is_there_and_no_other() -> None:
    assert {name for name in gasp_core.__all__ if getattr(gasp_core, name) is None} == set()
    assert set(gasp_core.__all__) <= set(dir(gasp_core))
    assert gasp_core.__version__[0].isdigit()
    assert gasp_core.GASP is GASP
    with pytest.raises(AttributeError, match="no attribute 'Detector'"):
        _ = gasp_core.Detector  # type: ignore[attr-defined]


def test_neither_the_names_nor_the_command_import_torch() -> None:
    program = (
        "import sys, gasp_core\n"
        "assert not [name for name in sys.modules if name.startswith('gasp_core.')], 'imported early'\n"
        "from gasp_core import *\n"
        "import gasp_core.cli\n"
        "print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_sentence_has_a_result_whether_it_has_a_score_or_not(detector: GASP) -> None:
    found = detector.detect(CONTEXT, ANSWER, QUESTION, threshold=99)
    heading, first, second = found
    assert len(found) == 3
    assert "".join(ANSWER[one.start : one.end] for one in found) == "".join(one.text for one in found) == ANSWER
    assert (heading.sensitivity, heading.flagged, heading.skip_reason) == (None, None, "heading")
    assert (first.flagged, second.flagged, first.skip_reason) == (True, True, None)
    assert all(set(one.features) == FEATURES for one in found)
    assert {value for name, value in heading.features.items() if name != "n_tokens"} == {None}
    assert first.sensitivity == first.features["max_drop"]
    assert first.features["n_tokens"] == 6
    assert first.surprisal is not None
    assert first.surprisal > 0


def test_sensitivity_is_the_feature_that_was_asked_for(folder: str, detector: GASP) -> None:
    features = detector.detect(CONTEXT, ANSWER).sentences[1].features
    for name in FEATURES - {"n_tokens"}:
        found = GASP(folder, 3, sensitivity_feature=name, device="cpu").detect(CONTEXT, ANSWER).sentences[1]
        assert found.sensitivity == found.features[name] == pytest.approx(features[name], abs=1e-5)


@pytest.mark.parametrize("feature", ["n_tokens", "max", ""])
def test_an_unknown_feature_is_refused_before_a_model_is_loaded(feature: str) -> None:
    with pytest.raises(ValueError, match=r"sensitivity_feature must be one of .*max_drop"):
        GASP("no-such-model", sensitivity_feature=feature)


# Which detector gives the sensitivity


def test_who_names_nothing_gets_the_best_detector_that_the_model_admits_and_its_first_bound(folder: str) -> None:
    plain = GASP(folder, device="cpu", dtype="float32")
    assert (plain.detector, plain.threshold) == (FUSED_FREE.name, 2.0)
    found = plain.detect(CONTEXT, ANSWER, QUESTION)
    assert {one.detector for one in found} == {"fused-free"}
    for one in found:
        assert (one.sensitivity is None) == (one.features["gap"] is None)
        assert one.flagged == (None if one.sensitivity is None else one.sensitivity < 2.0)
    assert any(one.supporting_chunk is not None for one in found)


@pytest.mark.parametrize(
    "named",
    [
        {"k_chunks": 5},
        {"threshold": None},
        {"threshold": 0.5},
        {"economical": False},
        {"sensitivity_feature": "max_drop"},
        {"max_ctx_tokens": 1800},
        {"max_ans_tokens": 256},
        {"template": PLAIN},
    ],
)
def test_who_names_one_of_gasp_rags_parameters_even_with_its_default_gets_gasp_rags_numbers(
    folder: str, named: dict[str, Any]
) -> None:
    theirs = GASP(folder, device="cpu", **named)
    assert (theirs.detector, theirs.threshold) == ("max-drop", named.get("threshold"))
    assert [one.sensitivity == one.features["max_drop"] for one in theirs.detect(CONTEXT, ANSWER)] == [True] * 3


def test_a_threshold_in_a_call_without_a_detector_is_one_of_gasp_rags(folder: str) -> None:
    plain = GASP(folder, device="cpu")
    theirs = GASP(folder, k_chunks=5, device="cpu")
    assert_alike(plain.detect(CONTEXT, ANSWER, threshold=0.5), theirs.detect(CONTEXT, ANSWER, threshold=0.5))
    assert_alike(plain.detect_batch(ITEMS, threshold=0.5), theirs.detect_batch(ITEMS, threshold=0.5))
    assert plain.detect(CONTEXT, ANSWER).sentences[1].detector == "fused-free"
    named = GASP(folder, detector="jsd", device="cpu")
    assert {one.detector for one in named.detect(CONTEXT, ANSWER, threshold=0.5)} == {"jsd"}


def test_a_detector_that_is_named_goes_with_gasp_rags_parameters(folder: str) -> None:
    named = GASP(folder, k_chunks=2, economical=True, detector="jsd", device="cpu")
    assert (named.detector, named.threshold) == ("jsd", 0.06)
    one = named.detect(CONTEXT, ANSWER).sentences[1]
    assert one.sensitivity == one.features["jsd_noctx"]
    assert GASP(folder, threshold=None, detector="jsd", device="cpu").threshold is None
    assert GASP(folder, threshold=0.3, detector="max_drop", device="cpu").detector == "max-drop"
    assert GASP(folder, k_chunks=2, detector="auto", device="cpu").detector == "fused-free"
    assert GASP(folder, detector="perplexity", device="cpu").detect(CONTEXT, ANSWER).sentences[1].flagged is None


def test_a_detector_of_text_skips_what_the_scorer_does_and_says_why_it_has_no_score(folder: str) -> None:
    heading, word, sentence = GASP(folder, detector="lexical", device="cpu").detect(
        CONTEXT, "# Visit\n\nUnbelievable! The museum opens at nine."
    )
    assert (heading.sensitivity, heading.skip_reason) == (None, "heading")
    assert (word.sensitivity, word.skip_reason) == (None, "too_short")
    assert (sentence.sensitivity, sentence.skip_reason, sentence.detector) == (0.0, None, "lexical")


def test_without_gasp_rags_limits_everything_is_read(folder: str) -> None:
    long = " ".join(f"Room {number} opens at nine and closes at six." for number in range(300))
    theirs, ours = (GASP(folder, detector=name, economical=True, device="cpu") for name in (None, "auto"))
    assert theirs.detect(long, ANSWER).context_tokens_cut > 0
    assert ours.detect(long, ANSWER).context_tokens_cut == 0
    assert GASP(folder, detector="gap", max_ctx_tokens=100, device="cpu").detect(long, ANSWER).context_tokens_cut > 0


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"detector": "magic"}, "no detector 'magic'; there are gap"),
        ({"detector": "trained"}, "trained has to learn before it scores"),
        ({"detector": "gap", "sensitivity_feature": "gap"}, "name one of them"),
        ({"detector": "auto", "sensitivity_feature": "gap"}, "name one of them"),
        ({"detector": "max-drop", "economical": True}, "max-drop needs leave-one-out"),
    ],
)
def test_a_detector_that_is_of_no_use_is_refused_before_a_model_is_loaded(named: dict[str, Any], message: str) -> None:
    with pytest.raises(DetectorError, match=message):
        GASP("no-such-model", **named)


def test_a_readout_of_the_states_of_others_is_refused_and_fused_standardised(folder: str) -> None:
    with pytest.raises(ModelUnsupported, match="readout was fitted to the scores of SmolLM2"):
        GASP(folder, detector="readout", device="cpu")
    fused = GASP(folder, detector="fused", device="cpu")
    assert (fused.detector, fused.threshold) == ("fused", 2.0)
    assert fused.detect(CONTEXT, ANSWER).sentences[1].sensitivity is not None


def test_fewer_than_one_chunk_is_refused_before_a_model_is_loaded() -> None:
    with pytest.raises(ValueError, match="k_chunks must be at least 1"):
        GASP("no-such-model", k_chunks=0)


def test_the_economical_way_reports_the_gap_unless_it_has_what_is_asked_for(folder: str, economical: GASP) -> None:
    assert economical.sensitivity_feature == "gap"
    assert (
        GASP(folder, economical=True, sensitivity_feature="jsd_noctx", device="cpu").sensitivity_feature == "jsd_noctx"
    )
    one = economical.detect(CONTEXT, ANSWER).sentences[1]
    assert one.sensitivity == one.features["gap"]
    assert [one.features[name] for name in ("max_drop", "mean_drop", "top2_drop", "max_jsd")] == [None] * 4
    assert (one.supporting_chunk, one.supporting_chunk_index) == (None, -1)


def test_what_speaks_against_a_sentence_is_named_by_its_place_and_text(detector: GASP) -> None:
    results = list(detector.detect(PASSAGES, ANSWER))
    named = [one for one in results if one.contradicting_chunk is not None]
    assert named
    assert all(PASSAGES[one.contradicting_chunk_index] == one.contradicting_chunk for one in named)
    assert all(one.contradicting_chunk_index == -1 for one in results if one not in named)


def test_a_context_of_one_text_is_grouped_and_the_supporting_chunk_is_one_of_the_groups(detector: GASP) -> None:
    chunks = [CONTEXT[start:end] for start, end in chunk_spans(CONTEXT, 3)]
    supported = [one for one in detector.detect(CONTEXT, ANSWER) if one.supporting_chunk is not None]
    assert supported
    for one in supported:
        assert chunks[one.supporting_chunk_index] == one.supporting_chunk


def test_the_texts_of_a_list_are_the_chunks_and_are_counted_in_that_list(detector: GASP) -> None:
    supported = [one for one in detector.detect(PASSAGES, ANSWER) if one.supporting_chunk is not None]
    assert supported
    for one in supported:
        assert PASSAGES[one.supporting_chunk_index] == one.supporting_chunk


def test_a_list_of_one_text_is_one_chunk_however_long(detector: GASP) -> None:
    one = detector.detect(["", CONTEXT], ANSWER).sentences[2]
    # Without its only chunk there is no context.
    assert one.features["max_drop"] == one.features["mean_drop"] == pytest.approx(one.features["gap"], abs=1e-5)
    assert one.supporting_chunk in (None, CONTEXT)
    assert one.supporting_chunk_index in (-1, 1)


def test_a_batch_gives_what_each_item_gives_alone(detector: GASP) -> None:
    together = detector.detect_batch(iter(ITEMS))
    assert [len(one) for one in together] == [3, 1, 0, 1, 1, 2]
    for item, found in zip(ITEMS, together, strict=True):
        context = item["passages"] if "passages" in item else item["context"]
        alone = detector.detect(context, item["answer"], item.get("query") or item.get("question"))
        assert numbers(found) == pytest.approx(numbers(alone), abs=1e-4)
        assert [replaced(one) for one in found] == [replaced(one) for one in alone]


def numbers(found: Detection) -> list[float]:
    return [value for one in found for value in one.features.values() if value is not None]


def replaced(one: SentenceResult) -> SentenceResult:
    return replace(one, sensitivity=None, features={}, surprisal=None)


def test_a_batch_is_handed_to_the_scorer_several_at_once(detector: GASP, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    score = GroundingScorer.score

    def counting(self: GroundingScorer, exchanges: Sequence[Exchange], *rest: Any) -> Any:
        sizes.append(len(exchanges))
        return score(self, exchanges, *rest)

    monkeypatch.setattr(GroundingScorer, "score", counting)
    detector.detect_batch(ITEMS[:1] * 9)
    assert sum(sizes) == 9
    assert max(sizes) > 1


def test_an_item_that_lacks_a_text_is_named_before_any_is_scored(
    detector: GASP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroundingScorer, "score", lambda *_: pytest.fail("scored"))
    with pytest.raises(ValueError, match="item 6 needs an 'answer'"):
        detector.detect_batch([*ITEMS, {"context": CONTEXT}])


def test_an_answer_without_any_score_says_why(detector: GASP) -> None:
    empty = detector.detect(CONTEXT, "")
    assert (len(empty), empty.skip_reason) == (0, "empty_answer")
    bare = detector.detect([], ANSWER, threshold=99)
    assert bare.skip_reason == "no_passages"
    assert {one.skip_reason for one in bare} == {"no_passages"}
    assert bare.flagged() == []
    assert bare.summary() == {"n_sentences": 3, "n_flagged": 0, "mean_sensitivity": None, "min_sensitivity": None}


def test_what_was_not_read_is_counted(folder: str) -> None:
    short = GASP(folder, k_chunks=4, max_ctx_tokens=18, max_ans_tokens=12, device="cpu")
    found = short.detect(CONTEXT, "The museum opens at nine. Tickets cost twelve euros. Dogs must stay outside.")
    assert found.context_tokens_cut > 0
    assert found.answer_tokens_cut > 0
    assert [one.skip_reason for one in found] == [None, None, "past_window"]
    assert detector_reads_all(GASP(folder, device="cpu"))


def detector_reads_all(detector: GASP) -> bool:
    found = detector.detect(CONTEXT, ANSWER)
    return (found.context_tokens_cut, found.answer_tokens_cut) == (0, 0)


def test_the_threshold_of_a_call_goes_before_that_of_the_detector_and_is_strict(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = GASP(folder, threshold=99, device="cpu")
    # The numbers of one reading, because a second one may round otherwise.
    read: list[AnswerGrounding] = []
    score = GroundingScorer.score

    def once(self: GroundingScorer, *arguments: Any) -> list[AnswerGrounding]:
        read.extend([] if read else score(self, *arguments))
        return read

    monkeypatch.setattr(GroundingScorer, "score", once)
    first = detector.detect(CONTEXT, ANSWER).sentences[1]
    assert first.flagged is True
    assert first.sensitivity is not None
    assert detector.detect(CONTEXT, ANSWER, threshold=first.sensitivity).sentences[1].flagged is False
    assert detector.detect(CONTEXT, ANSWER, threshold=0.0).sentences[1].flagged is (first.sensitivity < 0)
    assert GASP(folder, k_chunks=5, device="cpu").detect(CONTEXT, ANSWER).sentences[1].flagged is None


def test_a_summary_is_over_the_sentences_with_a_score() -> None:
    found = Detection([result(0, None), result(1, -0.5, flagged=True), result(2, 1.5, flagged=False)])
    assert found.summary() == {"n_sentences": 3, "n_flagged": 1, "mean_sensitivity": 0.5, "min_sensitivity": -0.5}
    assert [one.index for one in found.flagged()] == [1]
    assert Detection([]).summary()["mean_sensitivity"] is None


def test_records_are_json_and_share_nothing_with_the_results(detector: GASP) -> None:
    found = detector.detect(CONTEXT, ANSWER, threshold=0.5)
    records = found.to_records()
    assert json.loads(json.dumps(records)) == records
    assert records[0]["skip_reason"] == "heading"
    assert SentenceResult(**records[1]) == found.sentences[1]
    records[1]["features"].clear()
    assert set(found.sentences[1].features) == FEATURES


def test_the_prompt_may_be_that_of_gasp_rag(folder: str, tiny_model: LanguageModel) -> None:
    found = GASP(folder, economical=True, template=GASP_RAG, device="cpu").detect(CONTEXT, ANSWER, QUESTION)
    exchange = Exchange(QUESTION, (Passage("p", CONTEXT),), ANSWER)
    (expected,) = GroundingScorer(tiny_model, template=GASP_RAG).score([exchange])
    assert [one.sensitivity for one in found] == pytest.approx([one.gap for one in expected.sentences], abs=1e-5)


def test_scoring_changes_nothing_outside(detector: GASP) -> None:
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    detector.detect(CONTEXT, ANSWER)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)


def test_the_scorer_of_a_detector_scores_cases_with_the_same_model(detector: GASP) -> None:
    scores = detector.scorer.score(Case.from_texts(CONTEXT, ANSWER, QUESTION, k_chunks=detector.k_chunks))
    found = detector.detect(CONTEXT, ANSWER, QUESTION)
    assert_alike([score.features for score in scores], [dict(one.features) for one in found])


def test_results_can_be_written_read_and_measured(detector: GASP, tmp_path: Path) -> None:
    write_records([{"context": CONTEXT, "answer": ANSWER}], tmp_path / "in.csv")
    (found,) = detector.detect_batch(read_items(tmp_path / "in.csv"))
    scores = [-one.sensitivity for one in found if one.sensitivity is not None]
    assert evaluate([0, 1], scores)["n"] == 2
