from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import UnitKind
from gasp_core.text.sentences import _segment, split_answer

MEGABYTE = 1_000_000
PIECES = [
    *(
        "A",
        "word ",
        "Dr. ",
        "U.S. ",
        "e.g. ",
        "5",
        "1. ",
        "(2) ",
        ". ",
        ".",
        "! ",
        "?",
        "… ",
        "。",
        "।",
        "؟ ",
        "[1]",
        "(Lee, 2020).",
    ),
    *(
        '"',
        "“",
        "”",
        "'",
        "’",
        "`",
        "**",
        "*",
        "(",
        ")",
        "[",
        ":",
        ",",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "\u2028",
        "\x85",
    ),
    *(
        "\xa0",
        "\u3000",
        "- ",
        "# ",
        "| a |",
        "•",
        "e\u0301",
        "日本語",
        "हिन्दी",
        "👩‍🔬",
        "\ud800",
        "\x00",
        "\u200b",
        "ß",
    ),
]
prose = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def pieces(text: str) -> list[str]:
    return [text[sentence.start : sentence.end] for sentence in split_answer(text)]


def said(text: str) -> list[str]:
    return [piece.strip() for piece in pieces(text)]


@given(st.one_of(prose, st.text(st.characters(exclude_categories=[]))))
def test_sentences_tile_the_text_and_start_with_a_visible_character(text: str) -> None:
    sentences = split_answer(text)
    assert "".join(text[sentence.start : sentence.end] for sentence in sentences) == text
    for sentence in sentences:
        assert sentence.start < sentence.end
        assert text.isspace() or text[sentence.start : sentence.end].strip()
    for sentence in sentences[1:]:
        assert not text[sentence.start].isspace()


def test_an_empty_text_has_no_sentence_and_a_blank_one_is_a_unit_of_prose() -> None:
    assert split_answer("") == ()
    assert [(unit.start, unit.end, unit.kind) for unit in split_answer(" \n ")] == [(0, 3, UnitKind.PROSE)]


def test_whitespace_belongs_to_the_sentence_before_and_at_the_start_to_the_first() -> None:
    assert pieces("\n  It rains.  It pours.\n\nIt stops. \n") == ["\n  It rains.  ", "It pours.\n\n", "It stops. \n"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Weber met Prof. Lee at the U.S. Army base.",
        "Take e.g. 3.5 ml of v2.0, i.e. No. 5 on the list.",
        "See https://example.org/a.b?c=d.e for more.",
        "He waited... and left.",
        "It weighs approx. 5 kg, at max. 7 and min. 3.",
        "See fig. 2 and vol. 3 of Smith et al. (2020) for it.",
        "The points x1, x2, ..., x6 are known.",
        "J. K. Rowling wrote it.",
    ],
)
def test_a_full_stop_within_a_sentence_does_not_split_it(sentence: str) -> None:
    assert said(f"It rains. {sentence} It stops.") == ["It rains.", sentence, "It stops."]


@pytest.mark.parametrize(
    "sentence",
    [
        "It rains.[1]",
        "It rains. [1] [2]",
        "It rains. (Smith et al., 2020).",
        "It rains. (Passage 2)",
        "It rains.²",
        "**It rains.**",
        "*It rains.*",
        "“It rains.”",
        'Ann said "it rains."',
        "Ann said “It rains. It pours.”",
        "It rains!!!",
        "Does it rain?!",
    ],
)
def test_what_closes_a_sentence_stays_with_it(sentence: str) -> None:
    assert said(f"{sentence} The sun shines.") == [sentence, "The sun shines."]


def test_a_parenthesis_that_is_a_sentence_stands_alone() -> None:
    assert said("It rains. (It did so in 2020.) It stops.")[0] == "It rains."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("下雨了。他走了！为什么？", 3),
        ("वह गया। वह आया।", 2),
        ("هل هذا سؤال؟ نعم.", 2),
        ("¿Llueve? ¡Sí! Bueno.", 3),
        ("「雨だ。寒い。」彼は去った。", 2),
        ("It is 20°C 😀. 👩‍🔬 She left. E\u0301milie came.", 3),
    ],
)
def test_other_scripts_end_sentences_too(text: str, count: int) -> None:
    assert len(pieces(text)) == count


def test_a_long_quotation_does_not_hide_its_sentences() -> None:
    assert len(pieces("“" + "It rains in the valley. " * 30 + "”")) == 30
    assert len(pieces('A 5" pipe. ' + "It rains in the valley. " * 30 + 'A 6" pipe.')) == 32


def test_bullets_within_a_line_do_not_hide_sentences() -> None:
    assert said("Notes. • It rains. It pours. • It stops.") == ["Notes.", "• It rains.", "It pours.", "• It stops."]


def test_a_list_marker_stays_with_the_first_sentence_of_its_item() -> None:
    text = "1. Fill it. Wait.\n2) Close it.\n  - (a) Lock it."
    assert pieces(text) == ["1. Fill it. ", "Wait.\n", "2) Close it.\n  ", "- (a) Lock it."]
    assert {unit.kind for unit in split_answer(text)} == {UnitKind.LIST_ITEM}


@pytest.mark.parametrize("text", ["Fill it. 2. Close it.", "1.\n\nFill it.\n2.", "**1.** Fill it.", "Fill it.\n\n2."])
def test_a_list_marker_is_never_a_sentence(text: str) -> None:
    assert all(any(character.isalpha() for character in piece) for piece in pieces(text))


def test_a_numbered_list_within_a_line_is_split_before_its_numbers() -> None:
    assert said("The steps: 1. Fill it. 2. Close it.") == ["The steps:", "1. Fill it.", "2. Close it."]
    assert said("Due to: 1. Low oil 2. Bad air 3. Dust.") == ["Due to:", "1. Low oil", "2. Bad air", "3. Dust."]
    assert said("She was in grade 1. He was not.") == ["She was in grade 1.", "He was not."]


def test_a_newline_within_prose_does_not_split_it() -> None:
    assert len(pieces("the rain falls on the old mill\nand on the river\nbeside it")) == 1


def test_every_kind_of_block_but_prose_and_items_is_one_unit() -> None:
    text = (
        "# A. B. c\nIt rains. It pours:\n- one\n\n| a | b |\n|--|--|\n| It rains. | It pours. |\n\n```\nx. Y. z\n```\n"
    )
    assert [(unit.kind.value, text[unit.start : unit.end].strip()) for unit in split_answer(text)] == [
        ("heading", "# A. B. c"),
        ("prose", "It rains."),
        ("prose", "It pours:"),
        ("list_item", "- one"),
        ("heading", "| a | b |"),
        ("table_rule", "|--|--|"),
        ("table_row", "| It rains. | It pours. |"),
        ("code", "```\nx. Y. z\n```"),
    ]


def test_lone_surrogates_and_wide_whitespace_are_read() -> None:
    assert said("A\xa0. It rains \ud800 here. It\u3000stops.") == ["A\xa0.", "It rains \ud800 here.", "It\u3000stops."]


def test_a_panic_in_the_native_code_costs_only_the_boundaries() -> None:
    # What the shadow keeps from it: an initial, then whitespace of several bytes. The trace is on standard error.
    assert _segment("A\u2028. It rains. It stops.") == [0]
    assert _segment("It rains. It stops.") == [0, 10]


def test_a_sentence_longer_than_any_window_stays_whole() -> None:
    sentence = "It rains " + "and pours " * 2_000 + "here. "
    assert pieces(sentence + "It stops.") == [sentence, "It stops."]


def test_window_ends_neither_cut_nor_join_sentences() -> None:
    sentences = [f"Drop number {index} weighs approx. {index} grams [{index}]. " for index in range(2_000)]
    assert pieces("".join(sentences)) == sentences


@pytest.mark.parametrize("character", [*"*|` \n.", "\ud800", "a"])
def test_a_megabyte_of_one_character_is_one_unit(character: str) -> None:
    assert len(split_answer(character * MEGABYTE)) == 1


# sentencex alone takes seconds to minutes for some of these.
@pytest.mark.parametrize("unit", [*"\"'(“「。😀", "x `", "1. ", "est. ", "[1] ", "(1a) ", "! ", "' ", "> "])
def test_a_long_run_of_decoration_is_one_unit(unit: str) -> None:
    assert len(split_answer(unit * (MEGABYTE // 10 // len(unit)))) == 1
