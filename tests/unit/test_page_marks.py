"""What a sentence shares with a passage, marked in the passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.languages import Language
from worker.page.marks import MAX_MARKS, marked, telling_stems


def shared(sentence: str, passage: str, language: Language | None = Language.ENGLISH) -> list[str]:
    pieces = marked(passage, telling_stems(sentence, language), language)
    assert "".join(piece.text for piece in pieces) == passage
    return [piece.text for piece in pieces if piece.is_marked]


@pytest.mark.parametrize(
    ("sentence", "passage", "marks"),
    [
        ("The tours start at noon.", "A tour starts at noon.", ["tour", "starts", "noon"]),
        ("It costs 1,200 euros.", "Price: 1200 euros, not 12.", ["1200", "euros"]),
        ("It is the one.", "It is the other.", []),
        ("Marie's L'Oréal", "L’Oréal and Marie", ["L’Oréal", "Marie"]),
        ("Nothing", "", []),
    ],
)
def test_words_numbers_and_names_are_marked_in_any_form(sentence: str, passage: str, marks: list[str]) -> None:
    assert shared(sentence, passage) == marks


def test_scripts_without_blanks_are_marked_by_pairs() -> None:
    assert shared("東京駅は大きい。", "新しい東京駅です。", Language.JAPANESE) == ["東京駅"]


def test_a_text_has_a_bounded_number_of_marks() -> None:
    assert len(shared("noon", "noon " * (2 * MAX_MARKS))) == MAX_MARKS


@given(st.text(), st.text(), st.sampled_from([None, *Language]))
def test_a_marked_text_is_the_text(sentence: str, passage: str, language: Language | None) -> None:
    shared(sentence, passage, language)
