"""What supports a sentence where several passages hold it: copies, overlapping parts of a text, and none of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from torch import Tensor

from gasp_core.grounding import Exchange, Method, Passage, SentenceGrounding
from gasp_core.model import LanguageModel, load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.taps import Tap
from gasp_core.plan import Plan
from gasp_core.scorer import GroundingScorer
from gasp_core.support import NEAR
from gasp_core.support_search import MOST_PER_GROUP
from tests.bars import FULL, bar

WARRANTY = "The warranty of the Belmora 300 lasts 30 months."
OTHERS = ("Returns are free for 14 days. The receipt must be shown.", "The shop in Lyon opens at nine.")
ASKED, ANSWER = "How long is the warranty?", "The warranty lasts 30 months."

BRIDGE = (
    "The Halvard bridge was opened in 1911 after six years of work.",
    "It spans the river Tarn between Orlin and Veshta.",
    "Its main arch is 212 metres long and made of riveted steel.",
    "The engineer Ilse Korman designed it after the flood of 1903.",
    "Tolls were collected until 1954 at the northern tower.",
    "Today some 14,000 vehicles cross it every day.",
    "The bridge was repainted in green in 1998.",
    "A footpath on the eastern side is open from dawn to dusk.",
)
KORMAN = "The engineer Ilse Korman designed the bridge after the flood of 1903."


class Counted:
    """Passes that count the prompts that they are given beyond the two of every plan."""

    can_hide = True

    def __init__(self, model: LanguageModel) -> None:
        self._passes = choose_passes(model).passes
        self.removals: list[int] = []

    def forget(self) -> None:
        self._passes.forget()

    def reading(self, taps: Sequence[Tap]) -> Passes:
        return self._passes.reading(taps)

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        self.removals.append(sum(len(plan.removals) for plan in plans))
        return self._passes.answer_states(plans)


@pytest.fixture(scope="module")
def packaged() -> LanguageModel:
    return load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def passes(packaged: LanguageModel) -> Counted:
    return Counted(packaged)


@pytest.fixture(scope="module")
def scorer(packaged: LanguageModel, passes: Counted) -> GroundingScorer:
    return GroundingScorer(packaged, passes=passes)


def exchange(question: str, passages: Sequence[str], answer: str) -> Exchange:
    return Exchange(question, tuple(Passage(f"p{at}", text) for at, text in enumerate(passages)), answer)


def found(scorer: GroundingScorer, question: str, passages: Sequence[str], answer: str) -> SentenceGrounding:
    """The answer's only sentence."""
    (one,) = scorer.score([exchange(question, passages, answer)], Method.LEAVE_ONE_OUT)[0].sentences
    return one


def windows(sentences: Sequence[str], size: int, step: int) -> list[str]:
    return [" ".join(sentences[at : at + size]) for at in range(0, len(sentences) - size + 1, step)]


CASES = {
    "one word": (ASKED, (OTHERS[0], WARRANTY, WARRANTY.replace("lasts", "runs"), OTHERS[1]), ANSWER, {1, 2}),
    "copies alone with another": (ASKED, (WARRANTY, WARRANTY.replace("The", "Our"), OTHERS[0]), ANSWER, {0, 1}),
    "three": (
        ASKED,
        (OTHERS[0], WARRANTY, WARRANTY.replace("lasts", "runs"), WARRANTY.replace("The", "Our"), OTHERS[1]),
        ANSWER,
        {1, 2, 3},
    ),
    "German": (
        "Wann öffnet das Museum?",
        (
            "Hunde müssen draußen bleiben.",
            "Das Museum öffnet täglich um neun Uhr und schließt um achtzehn Uhr.",
            "Das Museum öffnet stets um neun Uhr und schließt um achtzehn Uhr.",
            "Der Eintritt kostet zwölf Euro.",
        ),
        "Das Museum öffnet um neun Uhr und schließt um achtzehn Uhr.",
        {1, 2},
    ),
    "Japanese": (
        "博物館は何時に開きますか？",
        (
            "犬は外で待たなければなりません。",
            "博物館は毎日午前九時に開館し、午後六時に閉館します。",
            "博物館は通常午前九時に開館し、午後六時に閉館します。",
            "入場料は十二ユーロです。",
        ),
        "博物館は午前九時に開館し、午後六時に閉館します。",
        {1, 2},
    ),
    "windows by two": ("Who designed the Halvard bridge?", windows(BRIDGE, 4, 2), KORMAN, {0, 1}),
    "windows by one": ("Who designed the Halvard bridge?", windows(BRIDGE, 3, 1), KORMAN, {1, 2, 3}),
}


# One of each kind where there is no time for all.
SHORT = ("one word", "Japanese", "windows by two")


@pytest.mark.parametrize("name", CASES if FULL else SHORT)
def test_passages_that_stand_in_for_each_other_are_the_support_together(scorer: GroundingScorer, name: str) -> None:
    question, passages, answer, expected = CASES[name]
    one = found(scorer, question, passages, answer)
    assert one.supporting_chunk in expected
    assert set(one.supporting_chunks) == expected
    assert one.contradicting_chunk not in expected
    assert one.gap is not None
    assert one.supporting_drop is not None
    assert one.supporting_drop >= NEAR * one.gap
    assert max(drop.drop for drop in one.drops) < NEAR * one.gap


def test_a_passage_that_alone_supports_a_sentence_is_named_alone_and_costs_no_more(
    scorer: GroundingScorer, passes: Counted
) -> None:
    passes.removals.clear()
    one = found(scorer, ASKED, (OTHERS[0], WARRANTY, OTHERS[1]), ANSWER)
    assert (one.supporting_chunk, one.supporting_chunks, one.unlocated) == (1, (1,), False)
    assert one.supporting_drop == one.drops[1].drop
    assert passes.removals == [3]


def test_a_copy_that_says_otherwise_is_no_support(scorer: GroundingScorer) -> None:
    one = found(scorer, ASKED, (OTHERS[0], WARRANTY, WARRANTY.replace("30", "24"), OTHERS[1]), ANSWER)
    assert one.supporting_chunks == (1,)


def test_masked_chunks_that_stand_in_for_each_other_are_found_as_well(packaged: LanguageModel, passes: Counted) -> None:
    masked = GroundingScorer(packaged, passes=passes, masked=True)
    question, passages, answer, expected = CASES["three"]
    assert set(found(masked, question, passages, answer).supporting_chunks) == expected


PARTS = ("four brass screws", "two oak panels", "one steel hinge", "six rubber feet", "three copper pins")


def test_where_the_whole_context_supports_a_sentence_no_single_passage_is_named(scorer: GroundingScorer) -> None:
    steps = [f"Step {number}: take {part}." for number, part in enumerate((*PARTS, "nine felt pads"), start=1)]
    answer = f"You need {', '.join(PARTS)} and nine felt pads."
    one = found(scorer, "Which parts are needed?", steps, answer)
    assert (one.supporting_chunk, one.supporting_chunks, one.unlocated) == (None, (), True)
    assert one.supporting_drop == max(drop.drop for drop in one.drops)
    assert one.gap is not None
    assert one.gap > 2


def test_a_sentence_that_nothing_supports_is_not_said_to_have_support(scorer: GroundingScorer) -> None:
    one = found(scorer, ASKED, (*OTHERS, "Parking is free on Sundays."), "The warranty covers water damage as well.")
    assert not one.unlocated
    assert len(one.supporting_chunks) <= 1


def test_passages_are_looked_for_within_the_window_that_supports_a_sentence(
    packaged: LanguageModel, passes: Counted
) -> None:
    filler = "The river rose slowly that year and the ferries stayed in the harbour until spring. " * 8
    question, passages, answer, expected = CASES["three"]
    exchanged = exchange(question, (filler, *passages), answer)
    grounding = GroundingScorer(replace(packaged, window=192), passes=passes).score([exchanged], Method.LEAVE_ONE_OUT)[
        0
    ]
    (one,) = grounding.sentences
    assert grounding.n_windows > 1
    assert one.window > 0
    assert set(one.supporting_chunks) == {chunk + 1 for chunk in expected}


def test_the_drop_of_several_passages_is_that_of_a_plainly_read_prompt_without_them(
    packaged: LanguageModel, scorer: GroundingScorer
) -> None:
    plain = GroundingScorer(packaged, passes=PlainPasses(packaged, 2_048))
    question, passages, answer, _ = CASES["one word"]
    ours, theirs = (found(one, question, passages, answer) for one in (scorer, plain))
    assert ours.supporting_chunks == theirs.supporting_chunks
    assert ours.supporting_drop == pytest.approx(theirs.supporting_drop, abs=1e-3)


def test_what_is_read_more_is_bounded_by_the_number_of_passages(scorer: GroundingScorer, passes: Counted) -> None:
    told = BRIDGE[: bar(6, 5)]
    retrieved = windows(told, 3, 1)
    asked = exchange("What is known about the Halvard bridge?", retrieved, " ".join(told))
    passes.removals.clear()
    grounding = scorer.score([asked], Method.LEAVE_ONE_OUT)[0]
    assert passes.removals[0] == len(retrieved)
    assert sum(passes.removals[1:]) <= MOST_PER_GROUP * len(retrieved)
    passes.removals.clear()
    alone = scorer.score([asked])[0]
    assert passes.removals == [0]
    assert not any(one.supporting_chunks for one in alone.sentences)
    for one, said in zip(grounding.sentences, told, strict=True):
        holding = {chunk for chunk, text in enumerate(retrieved) if said in text}
        assert set(one.supporting_chunks) <= holding
