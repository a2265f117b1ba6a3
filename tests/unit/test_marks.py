"""What an answer with marks says, and where its sentences lie in the answer as it was shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import AnswerGrounding, Method, Sentence, SentenceGrounding, Truncation, UnitKind
from gasp_core.text.marks import Marks, as_shown, said_between, said_spans, shown_sentences, without_marks
from gasp_core.text.sentences import split_answer

SHOWN = "[1] Yes [2][3]. No. [4]\nOr so [5]"
MARKS = tuple((start, start + 3) for start in (0, 8, 11, 20, 30))


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, Marks]:
    """An answer with spans of it, in order, that touch or not."""
    pieces = draw(st.lists(st.tuples(st.text("ab .!\n-#", max_size=12), st.text("[1]", min_size=1, max_size=4))))
    shown, marks = "", []
    for said, mark in pieces:
        shown += said
        marks.append((len(shown), len(shown) + len(mark)))
        shown += mark
    return shown + draw(st.text("ab .!\n", max_size=12)), marks


def spans(sentences: list[Sentence]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in sentences]


def test_marks_are_cut_out_and_nothing_else() -> None:
    assert without_marks(SHOWN, MARKS) == " Yes . No. \nOr so "
    assert without_marks(SHOWN, ()) == SHOWN
    assert without_marks("[1]", [(0, 3)]) == ""


def test_a_mark_belongs_to_the_sentence_that_it_stands_in_or_behind() -> None:
    said = [Sentence(0, 7, UnitKind.PROSE), Sentence(7, 12, UnitKind.PROSE), Sentence(12, 18, UnitKind.PROSE)]
    assert spans(shown_sentences(said, MARKS)) == [(0, 16), (16, 24), (24, 33)]


@given(marked())
def test_the_sentences_of_what_is_said_tile_the_shown_answer_and_say_the_same_there(case: tuple[str, Marks]) -> None:
    shown, marks = case
    said = without_marks(shown, marks)
    sentences = list(split_answer(said))
    found = shown_sentences(sentences, marks)
    for scored, stored in zip(sentences, found, strict=True):
        assert said_between(shown, marks, stored.start, stored.end) == said[scored.start : scored.end]
        assert all(
            stored.start <= start < end <= stored.end or end <= stored.start or start >= stored.end
            for start, end in marks
        )
    if sentences:
        borders = [0, *(stored.end for stored in found)]
        assert [stored.start for stored in found] == borders[:-1]
        assert borders == sorted(borders)
        assert borders[-1] == len(shown)


def test_what_was_found_of_a_sentence_stays_with_it() -> None:
    found = (
        SentenceGrounding(0, Sentence(0, 5, UnitKind.PROSE), 3, 0.5, worst=(0, 3)),
        SentenceGrounding(1, Sentence(5, 8, UnitKind.PROSE), 2, -0.5, worst=(5, 8)),
    )
    grounding = AnswerGrounding(Method.TWO_PASS, found, (), Truncation(9, 0, 5, 0), n_windows=1)
    shown = as_shown(grounding, [(3, 7)])
    assert spans([one.sentence for one in shown.sentences]) == [(0, 9), (9, 12)]
    assert [one.worst for one in shown.sentences] == [(0, 3), (9, 12)]
    assert [(one.index, one.gap, one.n_tokens) for one in shown.sentences] == [(0, 0.5, 3), (1, -0.5, 2)]
    assert as_shown(grounding, ()) is grounding


@given(marked())
def test_spans_of_the_shown_answer_lead_back_to_what_was_said(example: tuple[str, Marks]) -> None:
    shown, marks = example
    said = list(split_answer(without_marks(shown, marks)))
    assert said_spans(spans(shown_sentences(said, marks)), marks) == spans(said)
