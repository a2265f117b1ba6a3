from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import Chunk, Passage
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer

texts = st.lists(st.sampled_from(["It rains. ", "Long ones " * 9 + "pour. ", "- an item\n", "\n\n", " ", "雨。"])).map(
    "".join
)


def passages(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage(f"p{index}", text) for index, text in enumerate(texts))


def test_several_passages_are_a_chunk_each_however_many_chunks_are_wanted() -> None:
    context = passages("One. Two.", " ", "Three.", "", "Four. Five. Six.")
    assert context_chunks(context, 1) == (Chunk(0, 0, 9, 0), Chunk(2, 0, 6, 1), Chunk(4, 0, 16, 2))


def test_blank_passages_or_none_give_no_chunk() -> None:
    assert context_chunks((), 5) == ()
    assert context_chunks(passages("", " \n\t", "\u3000"), 5) == ()


@pytest.mark.parametrize("max_chunks", [0, -1])
def test_fewer_than_one_chunk_is_refused(max_chunks: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        context_chunks(passages("One."), max_chunks)


@given(texts, st.integers(1, 12))
def test_a_single_passage_is_cut_between_sentences_into_as_many_chunks_as_it_can(text: str, max_chunks: int) -> None:
    chunks = context_chunks(passages("  ", text), max_chunks)
    sentences = split_answer(text) if text.strip() else ()
    assert len(chunks) == min(max_chunks, len(sentences))
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == (text if chunks else "")
    assert all(chunk.passage == 1 and chunk.start < chunk.end for chunk in chunks)
    assert {chunk.start for chunk in chunks} <= {sentence.start for sentence in sentences}


def test_the_parts_of_a_single_passage_are_of_nearly_equal_length() -> None:
    text = "".join(f"Sentence {index:02} of many. " for index in range(40))
    lengths = [chunk.end - chunk.start for chunk in context_chunks(passages(text), 5)]
    assert lengths == [len(text) // 5] * 5


def test_one_long_sentence_leaves_a_part_for_each_of_the_others() -> None:
    text = "A " + "very " * 100 + "long one. B is short. C is too."
    spans = [(chunk.start, chunk.end) for chunk in context_chunks(passages(text), 3)]
    assert spans == [(sentence.start, sentence.end) for sentence in split_answer(text)]


def test_chunks_that_say_the_same_share_a_group_numbered_in_order() -> None:
    context = passages(
        "Refunds take 30 days.", "Fees apply.", "  refunds\n TAKE ３０ days. ", "Fees apply!", "Fees apply."
    )
    assert [chunk.group for chunk in context_chunks(context, 9)] == [0, 1, 0, 2, 1]


def test_parts_of_a_single_passage_that_repeat_share_a_group() -> None:
    assert [chunk.group for chunk in context_chunks(passages("It rains. It pours. It rains. "), 3)] == [0, 1, 0]


def test_letters_that_fold_to_several_are_compared_as_folded() -> None:
    assert [chunk.group for chunk in context_chunks(passages("Die Straße", "DIE STRASSE", "ﬁne", "FINE"), 9)] == [
        0,
        0,
        1,
        1,
    ]


def test_chunks_that_say_nearly_the_same_share_a_group() -> None:
    words = [f"word{number}" for number in range(50)]
    corrected = [*words[:20], "corrected", *words[21:]]
    other_half = [*words[:25], *(f"other{number}" for number in range(25))]
    context = passages(" ".join(words), " ".join(corrected), " ".join(other_half), " ".join([*corrected, "footer"]))
    assert [chunk.group for chunk in context_chunks(context, 9)] == [0, 0, 1, 0]


def test_short_chunks_share_a_group_only_if_they_say_the_same() -> None:
    assert [chunk.group for chunk in context_chunks(passages("Yes", "No", "yes"), 9)] == [0, 1, 0]
