"""Which words of a sentence are grounded least: by hand, against every other choice, and with a model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import Exchange, Passage, Sentence, SentenceGrounding, UnitKind
from gasp_core.model import LanguageModel
from gasp_core.passes.taps import Tap, joint_slopes
from gasp_core.scorer import GroundingScorer
from gasp_core.text.marks import as_shown, without_marks
from gasp_core.tokens import WindowScores
from gasp_core.worst_span import LEAST_TOKENS, with_worst_spans, worst_span
from tests.unit.scoring.test_passes import DOGS, MUSEUM

WORDS = ["It", " opens", " at", " ni", "ne", " and", " clo", "ses", " at", " six", "."]


def laid_out(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text of tokens, and their spans in it."""
    text, spans = "", []
    for piece in pieces:
        spans.append((len(text), len(text) + len(piece)))
        text += piece
    return text, spans


def worst(pieces: Sequence[str], values: Sequence[float]) -> str | None:
    """The worst words of a text of one sentence."""
    text, spans = laid_out(pieces)
    found = worst_span(text, Sentence(0, len(text), UnitKind.PROSE), spans, values)
    return None if found is None else text[slice(*found)]


@pytest.mark.parametrize(
    ("low", "words"),
    [
        (0, "It opens at nine"),
        (4, "It opens at nine"),  # of several that are as low the first
        (6, "nine and closes"),
        (9, "closes at six."),
    ],
)
def test_the_worst_words_are_whole_ones_about_the_lowest_token(low: int, words: str) -> None:
    values = [0.0] * len(WORDS)
    values[low] = -9.0
    assert worst(WORDS, values) == words


@given(st.lists(st.tuples(st.sampled_from([" a", " bc", "d", ".", " (", "の", "。"]), st.integers(-9, 9)), min_size=1))
def test_no_other_words_are_worse(tokens: list[tuple[str, int]]) -> None:
    pieces, values = zip(*tokens, strict=True)
    text, spans = laid_out(pieces)
    found = worst_span(text, Sentence(0, len(text), UnitKind.PROSE), spans, values)
    assert found is not None
    start, end = found
    assert 0 <= start < end <= len(text)
    assert text[start:end] == text[start:end].strip()
    inside = [value for (first, behind), value in zip(spans, values, strict=True) if first < end and behind > start]
    assert len(inside) >= min(LEAST_TOKENS, len(pieces))
    # A window of just so many tokens that begins and ends at blanks is one that could have been taken.
    for first in range(len(pieces) - LEAST_TOKENS + 1):
        behind = first + LEAST_TOKENS
        if pieces[first].startswith(" ") and (behind == len(pieces) or pieces[behind].startswith(" ")):
            assert sum(inside) / len(inside) <= sum(values[first:behind]) / LEAST_TOKENS + 1e-9


def test_characters_without_blanks_between_are_cut_apart_but_not_from_their_marks() -> None:
    assert worst(list("博物館は十時に開く"), [0, 0, 0, 0, -5, -5, 0, 0, 0]) == "物館は十時"
    # Thai: a vowel sign stays with its consonant. Korean has blanks, and its words stay whole.
    assert worst(list("เปิดเวลาสิบ"), [0] * 6 + [-1] * 4 + [-9]) == "ลาสิบ"
    assert (
        worst(["박물", "관은", " 아홉", " 시에", " 문을", " 여", "닫습", "니다"], [0] * 6 + [-9, 0])
        == "시에 문을 여닫습니다"
    )


def test_tokens_of_one_character_and_a_blank_before_the_sentence_are_no_border() -> None:
    text = "Hi. \U0001f44d\U0001f44d yes"
    # Two bytes a token: each of these characters is two tokens, which have the same span.
    spans = [(3, 4), (4, 5), (4, 5), (5, 6), (5, 6), (6, 10)]
    sentence = Sentence(4, len(text), UnitKind.PROSE)
    assert worst_span(text, sentence, spans, [0, -9, 0, 0, 0, 9]) == (4, 6)
    assert worst_span(text, sentence, [(3, 4)], [1]) is None


@pytest.mark.parametrize("tapped", [False, True])
def test_every_sentence_with_a_score_has_worst_words_in_it(tiny_model: LanguageModel, *, tapped: bool) -> None:
    scorer = GroundingScorer(tiny_model)
    if tapped:
        scorer = scorer.reading([Tap(1, torch.eye(tiny_model.width)[:, :3], torch.zeros(3), torch.ones(3))])
    for exchange, grounding in zip([MUSEUM, DOGS], scorer.score([MUSEUM, DOGS]), strict=True):
        assert any(one.worst for one in grounding.sentences)
        for one in grounding.sentences:
            assert (one.worst is None) == (one.gap is None)
            if one.worst is not None:
                assert one.sentence.start <= one.worst[0] < one.worst[1] <= one.sentence.end
                assert exchange.answer[slice(*one.worst)].strip()


def test_what_a_readout_adds_at_a_token_counts(tiny_model: LanguageModel) -> None:
    answer = "The museum opens at nine in the morning and closes at six in the evening of each and every day"
    exchange = Exchange("When?", (Passage("a", "The museum opens at nine and closes at six."),), answer)
    states = torch.randn(tiny_model.width, 1, generator=torch.Generator().manual_seed(1))
    found = [
        GroundingScorer(tiny_model).reading([Tap(1, states, torch.zeros(1), slopes)]).score([exchange])[0].sentences[0]
        for slopes in (None, torch.tensor([1.0]), torch.tensor([-1.0]))
    ]
    plain = GroundingScorer(tiny_model).score([exchange])[0].sentences[0]
    assert found[0].worst == plain.worst
    assert found[1].worst != found[2].worst
    assert [one.readings for one in found[1:]] == [found[0].readings] * 2


def test_taps_that_make_no_score_together_have_no_slopes() -> None:
    made, plain = Tap(1, torch.eye(2), torch.zeros(2), torch.ones(2)), Tap(2)
    assert joint_slopes([made, plain]) is None
    assert joint_slopes([]) is None
    assert torch.equal(joint_slopes([made, made]), torch.ones(4))  # type: ignore[arg-type]  # not None


def test_the_worst_words_are_those_of_the_window_that_supports_the_sentence() -> None:
    text, spans = laid_out(WORDS)

    def window(low: int) -> WindowScores:
        log_probabilities = torch.zeros(2, len(WORDS))
        log_probabilities[0, low] = -9.0
        return WindowScores(log_probabilities, torch.zeros(2, len(WORDS)), torch.zeros(len(WORDS), 0))

    sentence = Sentence(0, len(text), UnitKind.PROSE)
    (found, skipped) = with_worst_spans(
        text,
        [SentenceGrounding(0, sentence, len(WORDS), 0.5, window=1), SentenceGrounding(1, sentence, len(WORDS))],
        spans,
        [range(len(WORDS))] * 2,
        [window(0), window(9)],
        None,
    )
    assert found.worst is not None
    assert text[slice(*found.worst)] == "closes at six."
    assert skipped.worst is None


def test_the_worst_words_of_an_answer_with_marks_are_those_that_were_shown(tiny_model: LanguageModel) -> None:
    shown, marks = "[1] The museum opens [2] at nine [3] and closes at six [4].", ((0, 3), (21, 24), (33, 36), (55, 58))
    said = without_marks(shown, marks)
    (grounding,) = GroundingScorer(tiny_model).score([Exchange("When?", MUSEUM.passages, said)])
    words, found = grounding.sentences[0].worst, as_shown(grounding, marks).sentences[0].worst
    assert words is not None
    assert found is not None
    kept = [position for position in range(*found) if not any(start <= position < end for start, end in marks)]
    assert "".join(shown[position] for position in kept) == said[slice(*words)]
    assert (shown[found[0]], shown[found[1] - 1]) == (said[words[0]], said[words[1] - 1])
