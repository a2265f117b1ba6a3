"""Trajectories of sentences on tiny models: the states they are made of, and what they do not depend on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from gasp_core import GASP
from gasp_core.attractor.growth import MAX_STEPS, growing
from gasp_core.attractor.reading import read_trajectories
from gasp_core.attractor.trajectory import AnswerTrajectories, Trajectory
from gasp_core.cli import app
from gasp_core.detectors.detector import AnswerEvidence, Need
from gasp_core.detectors.registry import DETECTORS, detector_named
from gasp_core.errors import DetectorError, ModelOutOfMemory
from gasp_core.evaluation.cache import FeatureCache
from gasp_core.evaluation.gather import Reader, gather
from gasp_core.features import assign_tokens
from gasp_core.grounding import Exchange, Passage, SentenceSkip
from gasp_core.model import LanguageModel, load_model
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits, Plan, plan_exchange
from gasp_core.scorer import GroundingScorer
from gasp_core.template import PLAIN
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer
from tests.labelled_answers import labelled_rows, write_rows

MUSEUM = Exchange(
    "When does it open?",
    (
        Passage("hours", "The museum opens at nine."),
        Passage("prices", "Tickets cost twelve euros."),
        Passage("dogs", "Dogs must stay outside."),
    ),
    "# Opening\n\nThe museum opens at nine. Tickets cost twelve euros.",
)
LONG = replace(
    MUSEUM,
    passages=tuple(
        Passage(str(number), f"Museum {number} opens at nine and closes at six, on Mondays too.") for number in range(9)
    ),
)
NAMES = ("attractor-movement", "attractor-convergence", "attractor-dimension")
# Other shapes, and so other kernels, round otherwise.
TOLERANCE = 1e-4


@pytest.fixture
def passes(tiny_model: LanguageModel) -> Passes:
    return choose_passes(tiny_model).passes


class OtherStates:
    """The passes of a model, with something done to the states that they give."""

    def __init__(self, passes: Passes, change: Callable[[Tensor], Tensor]) -> None:
        self.can_hide = passes.can_hide
        self.runs = 0
        self._passes = passes
        self._change = change

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        self.runs += 1
        return [self._change(states) for states in self._passes.answer_states(plans)]

    def reading(self, taps: Sequence[Tap]) -> Passes:
        return self._passes.reading(taps)

    def forget(self) -> None:
        self._passes.forget()


def numbers(found: AnswerTrajectories) -> list[tuple[float, float, float] | None]:
    """The three numbers of each sentence."""
    return [None if one is None else (one.movement, one.convergence, one.dimension) for one in found.trajectories]


def assert_close(found: AnswerTrajectories, expected: AnswerTrajectories) -> None:
    assert found.skips == expected.skips
    for ours, theirs in zip(numbers(found), numbers(expected), strict=True):
        assert ours == (None if theirs is None else pytest.approx(theirs, rel=TOLERANCE, abs=TOLERANCE))


def plans_of(model: LanguageModel, exchange: Exchange) -> tuple[Plan, ...]:
    chunks = context_chunks(exchange.passages, 5)
    return plan_exchange(exchange, chunks, model=model, template=PLAIN, limits=Limits(), removals=growing)


def by_whole_texts(model: LanguageModel, exchange: Exchange, plan: Plan, sentence: int) -> Trajectory:
    """A sentence's trajectory by the model's own forward, one text at a time."""
    tokens = assign_tokens(exchange.answer, split_answer(exchange.answer), plan.answer_spans)[sentence]
    path = []
    for prompt in (plan.prompts[1], *plan.prompts[2:], plan.prompts[0]):
        with torch.inference_mode():
            states = model.hidden(torch.tensor([prompt + plan.answer_ids]))[0]
        answer = states[len(prompt) - 1 : -1].double().numpy()
        path.append(answer[tokens].mean(axis=0))
    steps = np.diff(np.stack(path), axis=0)
    return Trajectory(float(np.linalg.norm(path[-1])), steps @ steps.T)


# What they are made of


def test_a_trajectory_is_of_the_mean_states_under_contexts_that_grow_by_a_passage(
    tiny_model: LanguageModel, passes: Passes
) -> None:
    found = read_trajectories(tiny_model, passes, MUSEUM)
    (plan,) = plans_of(tiny_model, MUSEUM)
    decoded = [tiny_model.tokenizer.decode(prompt) for prompt in (*plan.prompts[1:], plan.prompts[0])]
    assert [[passage.text in prompt for passage in MUSEUM.passages] for prompt in decoded] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert found.skips == (SentenceSkip.HEADING, None, None)
    assert found.trajectories[0] is None
    for sentence in (1, 2):
        ours, theirs = found.trajectories[sentence], by_whole_texts(tiny_model, MUSEUM, plan, sentence)
        assert ours is not None
        assert ours.norm == pytest.approx(theirs.norm, rel=TOLERANCE)
        np.testing.assert_allclose(ours.products, theirs.products, rtol=TOLERANCE, atol=TOLERANCE)
        assert ours.movement > 0.01


def test_a_sentence_is_read_by_the_window_that_it_is_scored_by(tiny_model: LanguageModel, passes: Passes) -> None:
    found = read_trajectories(tiny_model, passes, LONG)
    (grounding,) = GroundingScorer(tiny_model, passes=passes).score([LONG])
    plans = plans_of(tiny_model, LONG)
    assert len(plans) == grounding.n_windows > 1
    for one, ours in zip(grounding.sentences[1:], found.trajectories[1:], strict=True):
        assert ours is not None
        theirs = by_whole_texts(tiny_model, LONG, plans[one.window], one.index)
        np.testing.assert_allclose(ours.products, theirs.products, rtol=TOLERANCE, atol=TOLERANCE)


def test_one_chunk_is_one_step(tiny_model: LanguageModel, passes: Passes) -> None:
    for one in read_trajectories(tiny_model, passes, replace(MUSEUM, passages=MUSEUM.passages[:1])).trajectories[1:]:
        assert one is not None
        assert one.products.shape == (1, 1)
        assert one.movement > 0
        assert (one.convergence, one.dimension) == pytest.approx((0, 1))


def test_a_single_text_grows_by_its_parts_and_the_same_said_twice_comes_at_once(
    tiny_model: LanguageModel, passes: Passes
) -> None:
    together = Passage("all", " ".join(passage.text for passage in MUSEUM.passages))
    hours, prices, dogs = MUSEUM.passages
    for passages, steps in (((together,), 3), ((hours, prices, hours, dogs), 3), ((dogs, replace(dogs, id="d")), 1)):
        one = read_trajectories(tiny_model, passes, replace(MUSEUM, passages=passages)).trajectories[1]
        assert one is not None
        assert one.products.shape == (steps, steps)


def test_many_chunks_come_several_at_a_time(tiny_model: LanguageModel, passes: Passes) -> None:
    words = ("at nine", "at six", "Dogs", "Tickets", "euros", "cost", "outside", "children", "pay", "museum", "days")
    many = replace(MUSEUM, passages=tuple(Passage(word, word) for word in words))
    (plan,) = plans_of(tiny_model, many)
    assert len(plan.prompts) == MAX_STEPS + 1
    one = read_trajectories(tiny_model, passes, many).trajectories[1]
    assert one is not None
    assert one.products.shape == (MAX_STEPS, MAX_STEPS)


# What they do not depend on


def test_without_a_look_at_the_context_nothing_moves(tiny_folder: Path) -> None:
    model = load_model(str(tiny_folder), device="cpu")
    with torch.no_grad():
        for layer in model.network.base_model.layers:
            layer.self_attn.o_proj.weight.zero_()
    found = read_trajectories(model, choose_passes(model).passes, MUSEUM)
    assert [one.movement for one in found.trajectories if one] == pytest.approx([0, 0], abs=1e-5)


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2"])
def test_padding_and_shared_beginnings_move_nothing(tiny_model_of: Callable[[str], LanguageModel], family: str) -> None:
    model = tiny_model_of(family)
    shared = read_trajectories(model, choose_passes(model).passes, MUSEUM)
    padded, alone = (read_trajectories(model, PlainPasses(model, tokens), MUSEUM) for tokens in (100_000, 1))
    assert_close(padded, alone)
    assert_close(shared, alone)


def test_what_was_read_before_moves_nothing(tiny_model: LanguageModel) -> None:
    others = [LONG, MUSEUM, replace(MUSEUM, question="Why?"), replace(MUSEUM, passages=MUSEUM.passages[::-1])]
    one_way, other_way = choose_passes(tiny_model).passes, choose_passes(tiny_model).passes
    first = [read_trajectories(tiny_model, one_way, exchange) for exchange in others]
    second = [read_trajectories(tiny_model, other_way, exchange) for exchange in others[::-1]][::-1]
    for ours, theirs in zip(first, second, strict=True):
        assert_close(ours, theirs)


def test_what_taps_read_beside_the_states_is_left_out(tiny_model: LanguageModel, passes: Passes) -> None:
    assert_close(
        read_trajectories(tiny_model, passes.reading([Tap(1)]), MUSEUM), read_trajectories(tiny_model, passes, MUSEUM)
    )


# Where there is none


@pytest.mark.parametrize(
    ("exchange", "skip"),
    [
        (replace(MUSEUM, passages=()), SentenceSkip.NO_PASSAGES),
        (replace(MUSEUM, question="When does it open? " * 60), SentenceSkip.QUESTION_TOO_LONG),
    ],
)
def test_an_answer_that_is_not_read_says_why_for_every_sentence(
    tiny_model: LanguageModel, passes: Passes, exchange: Exchange, skip: SentenceSkip
) -> None:
    found = read_trajectories(tiny_model, passes, exchange)
    assert found.skips == (skip,) * 3
    assert found.trajectories == (None,) * 3


def test_nothing_is_run_for_an_answer_without_a_sentence_to_score(tiny_model: LanguageModel, passes: Passes) -> None:
    counting = OtherStates(passes, lambda states: states)
    found = read_trajectories(tiny_model, counting, replace(MUSEUM, answer="# Opening"))
    assert (found.skips, found.trajectories, counting.runs) == ((SentenceSkip.HEADING,), (None,), 0)


def test_a_sentence_whose_states_are_no_numbers_says_so_and_the_others_have_theirs(
    tiny_model: LanguageModel, passes: Passes
) -> None:
    def spoilt(states: Tensor) -> Tensor:
        states = states.clone()
        states[2, -1] = torch.nan
        return states

    found = read_trajectories(tiny_model, OtherStates(passes, spoilt), MUSEUM)
    assert found.skips == (SentenceSkip.HEADING, None, SentenceSkip.NOT_FINITE)
    assert [one is None for one in found.trajectories] == [True, False, True]


def test_an_answer_that_is_too_much_for_the_device_is_an_error_of_ours(
    tiny_model: LanguageModel, passes: Passes
) -> None:
    def exhausted(_states: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(ModelOutOfMemory, match="do not fit cpu"):
        read_trajectories(tiny_model, OtherStates(passes, exhausted), MUSEUM)


# The detectors


def test_the_detectors_give_the_numbers_and_the_reasons(tiny_model: LanguageModel, passes: Passes) -> None:
    found = read_trajectories(tiny_model, passes, MUSEUM)
    evidence = AnswerEvidence(MUSEUM, found.sentences, trajectories=found)
    heading, *rest = zip(*(DETECTORS[name].read(evidence) for name in NAMES), strict=True)
    assert [one.reason for one in heading] == ["heading"] * 3
    for one, expected, all_three in zip(
        rest, numbers(found)[1:], DETECTORS["attractor"].read(evidence)[1:], strict=True
    ):
        assert expected is not None
        movement, convergence, dimension = expected
        assert [value for vector in one for value in vector.values] == [movement, convergence, -dimension]
        assert all_three.values == (movement, convergence, -dimension)
    with pytest.raises(ValueError, match="trajectories are needed"):
        DETECTORS[NAMES[0]].read(AnswerEvidence(MUSEUM, found.sentences))


def test_what_was_read_once_is_kept_and_a_broken_file_is_read_anew(
    tiny_model: LanguageModel, passes: Passes, tmp_path: Path
) -> None:
    counting = OtherStates(passes, lambda states: states)
    scorer = GroundingScorer(tiny_model, passes=counting)
    reader = Reader(scorer, tiny_model, FeatureCache(scorer.identity, tmp_path))
    for exchange in (MUSEUM, replace(MUSEUM, passages=())):
        (first,) = gather([exchange], {Need.TRAJECTORIES}, reader)
        runs = counting.runs
        (again,) = gather([exchange], {Need.TRAJECTORIES}, reader)
        assert counting.runs == runs
        assert first.trajectories is not None
        assert again.trajectories is not None
        assert again.trajectories.sentences == first.trajectories.sentences
        assert again.trajectories.skips == first.trajectories.skips
        assert numbers(again.trajectories) == numbers(first.trajectories)
        assert (first.two_pass, first.leave_one_out, first.sources) == (None, None, None)
    kept = list(tmp_path.rglob("*.npz"))
    assert len(kept) == 2
    for file in kept:
        file.write_bytes(file.read_bytes()[:100])
    runs = counting.runs
    reader.trajectories(MUSEUM)
    assert counting.runs > runs


def test_what_is_kept_of_other_sentences_is_not_taken(
    tiny_model: LanguageModel, passes: Passes, tmp_path: Path
) -> None:
    cache = FeatureCache(GroundingScorer(tiny_model, passes=passes).identity, tmp_path)
    found = read_trajectories(tiny_model, passes, MUSEUM)
    cache.store_trajectories(MUSEUM, found)
    assert cache.load_trajectories(MUSEUM) is not None
    first, *others = found.sentences
    cache.store_trajectories(MUSEUM, replace(found, sentences=(replace(first, end=first.end - 1), *others)))
    assert cache.load_trajectories(MUSEUM) is None


def test_eval_measures_them_where_they_are_named(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    data = write_rows(tmp_path / "museum.jsonl", labelled_rows(8))
    options = ("--model", str(tiny_folder), "--device", "cpu", "--resamples", "20", "--json")
    named = CliRunner().invoke(app, ["eval", str(data), "--detector", ",".join((*NAMES, "attractor")), *options])
    assert named.exit_code == 0, named.output
    entries = json.loads(named.stdout)["museum"]
    assert list(entries) == [*NAMES, "attractor"]
    assert all(entry["n"] == 16 and entry["lo"] <= entry["auc"] <= entry["hi"] for entry in entries.values())
    folders = {path.name for path in (tmp_path / "cache" / "features").glob("*/*")}
    assert folders == {"trajectories", "two_pass"}  # the latter for the control gap
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "other"))
    usual = CliRunner().invoke(app, ["eval", str(data), *options])
    assert not set(json.loads(usual.stdout)["museum"]) & {*NAMES, "attractor"}
    assert {path.name for path in (tmp_path / "other" / "features").glob("*/*")} == {"two_pass"}


@pytest.mark.parametrize("name", NAMES)
def test_what_a_grounding_does_not_tell_is_not_for_detect(tiny_folder: Path, name: str) -> None:
    assert detector_named(name).learner is None
    with pytest.raises(DetectorError, match=f"{name} reads what a grounding does not tell; `gasp eval` measures it"):
        GASP(str(tiny_folder), detector=name, device="cpu")
