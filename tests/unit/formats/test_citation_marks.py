"""Marks go so that what is left reads as if there had been none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.adapters.citation_marks import cut_marks, numbered_marks

MARK = re.compile(r"\[doc(\d)\]")


def left(answer: str, count: int = 9) -> str:
    for mark in reversed(cut_marks(answer, numbered_marks(answer, MARK, count))):
        start, end = mark["start"], mark["end"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        answer = answer[:start] + answer[end:]
    return answer


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("It opens at nine [doc1]. It closes.", "It opens at nine. It closes."),
        ("It opens at nine. [doc1] It closes.", "It opens at nine. It closes."),
        ("It opens at nine.[doc1][doc2] It closes.", "It opens at nine. It closes."),
        ("It opens at nine.[doc1]\nIt closes.", "It opens at nine.\nIt closes."),
        ("It opens [doc1] at nine", "It opens at nine"),
        ("It opens ([doc1], [doc2]).", "It opens."),
        ("It opens [doc1], [doc2]; it closes.", "It opens; it closes."),
        ("- [doc1] It opens\n[doc2] It closes", "- It opens\nIt closes"),
        ("It opens. [doc3]", "It opens."),
        ("Es öffnet um neun。[doc1]Und schließt。", "Es öffnet um neun。Und schließt。"),
        ("[doc1]", ""),
        ("See [docs] and [doc0].", "See [docs] and [doc0]."),
    ],
)
def test_what_is_left_reads_as_if_there_had_been_no_marks(shown: str, said: str) -> None:
    assert left(shown) == said


def test_a_number_beyond_the_sources_is_no_mark() -> None:
    assert left("It opens [doc2] at nine [doc3].", count=2) == "It opens at nine [doc3]."


@given(st.lists(st.sampled_from(["a", " ", "[doc1]", "[doc2]", ",", "(", ")", "\n", ". "]), max_size=30).map("".join))
def test_marks_lie_in_the_answer_in_order_and_hold_nothing_that_was_said(answer: str) -> None:
    marks = cut_marks(answer, numbered_marks(answer, MARK, 2))
    ends = [0]
    for mark in marks:
        start, end = mark["start"], mark["end"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert ends[-1] <= start < end <= len(answer)
        assert re.sub(r"\[doc\d\]|[\s,;()]", "", answer[start:end]) == ""
        ends.append(end)
    assert MARK.search(left(answer)) is None
