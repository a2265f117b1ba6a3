from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import UnitKind
from gasp_core.text.blocks import parse_blocks

MEGABYTE = 1_000_000
PIECES = [
    *("a", "Word ", "word. ", "1", "1.", "(a) ", "- ", "* ", "**", "**Bold**", "• ", "| a | b |", "|---|---|", "|"),
    *("```", "~~~", "`", "#", "# x", "===", "---", ":", "    ", "\t", " ", "\n", "\n\n", "\r\n", "\r", "\f", "\u2028"),
    *("\x85", "\xa0", "é", "e\u0301", "日本。", "😀", "\ud800", "\ufeff", "\u200b"),
]
layouts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def layout(text: str) -> list[tuple[str, str]]:
    return [(block.kind.value, text[block.start : block.end]) for block in parse_blocks(text)]


def kinds(text: str) -> list[str]:
    return [kind for kind, _ in layout(text)]


@given(st.one_of(layouts, st.text(st.characters(exclude_categories=[]))))
def test_blocks_tile_the_text_and_start_with_a_visible_character(text: str) -> None:
    blocks = parse_blocks(text)
    assert "".join(text[block.start : block.end] for block in blocks) == text
    for block in blocks[1:]:
        assert not text[block.start].isspace()
    for block in blocks:
        assert block.start <= block.body <= block.end
        assert block.start < block.end


def test_an_empty_text_has_no_block_and_a_blank_one_is_prose() -> None:
    assert parse_blocks("") == ()
    assert layout(" \n\t\r\n") == [("prose", " \n\t\r\n")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\f", "\u2028", "\u2029", "\x85", "\v"])
def test_every_line_end_ends_a_heading(line_end: str) -> None:
    assert layout(f"# Side effects{line_end}Nausea.") == [
        ("heading", f"# Side effects{line_end}"),
        ("prose", "Nausea."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# Side effects\nNausea.",
        "###### Side effects ######\nNausea.",
        "Side effects\n===\nNausea.",
        "Side effects\n------------\nNausea.",
        "**Side effects**\nNausea.",
        "**Side effects:**\n\nNausea.",
        "**Side effects**:\nNausea.",
    ],
)
def test_a_heading_is_told_from_what_follows(text: str) -> None:
    assert kinds(text) == ["heading", "prose"]


@pytest.mark.parametrize(
    "text",
    [
        "#hashtags are words",
        "####### seven",
        "# The drug cures every known disease.",
        "# " + "a title as long as a paragraph " * 5,
        "**The drug is safe**",
        "**The drug is safe.**",
        "**Safe** and **sound**",
        "The steps are:",
    ],
)
def test_a_line_that_may_be_a_claim_is_prose(text: str) -> None:
    assert kinds(text) == ["prose"]


def test_a_sentence_above_a_line_of_dashes_is_no_heading() -> None:
    assert kinds("The drug is safe.\n---\nNausea is common.") == ["prose", "table_rule", "prose"]


@pytest.mark.parametrize("rule", ["---", "* * *", "___", "==========", "|   |   |", "||||"])
def test_a_line_without_words_is_a_rule(rule: str) -> None:
    assert kinds(f"Before.\n\n{rule}\n\nAfter.") == ["prose", "table_rule", "prose"]


@pytest.mark.parametrize(
    "marker",
    ["-", "*", "+", "•", "–", "1.", "1)", "12.", "(1)", "(a)", "a)", "a.", "(iv)", "iv.", "1、", "- 1.", "* -"],
)
def test_a_list_marker_opens_an_item_whose_text_lies_behind_it(marker: str) -> None:
    text = f"{marker} Fill the tank."
    (block,) = parse_blocks(text)
    assert block.kind is UnitKind.LIST_ITEM
    assert text[block.body : block.end] == "Fill the tank."


@pytest.mark.parametrize(
    "text", ["1984. It was.", "3.5 litres", "-5 degrees", "*very* hot", "v2.0 is out", "A. Smith", "1."]
)
def test_a_number_or_a_sign_alone_opens_no_item_of_its_own(text: str) -> None:
    assert kinds(f"Before.\n\n{text}")[-1] == "prose"


def test_an_item_keeps_its_continuation_lines() -> None:
    text = "- fill the tank\n  with water\n- close\nthe lid"
    assert layout(text) == [("list_item", "- fill the tank\n  with water\n"), ("list_item", "- close\nthe lid")]


def test_an_indented_paragraph_after_an_item_belongs_to_the_list() -> None:
    text = "1. Fill the tank.\n\n    run(x);\n\nThen wait."
    assert layout(text) == [
        ("list_item", "1. Fill the tank.\n\n    "),
        ("list_item", "run(x);\n\n"),
        ("prose", "Then wait."),
    ]


def test_nested_items_are_items_and_their_indentation_belongs_to_the_block_before() -> None:
    assert layout("- a\n  - b\n\t\t- c") == [("list_item", "- a\n  "), ("list_item", "- b\n\t\t"), ("list_item", "- c")]


def test_a_marker_on_its_own_line_takes_the_text_that_follows() -> None:
    assert layout("1.\nFill it.\n2.\n\nClose it.") == [
        ("list_item", "1.\nFill it.\n"),
        ("list_item", "2.\n\nClose it."),
    ]


def test_a_marker_without_text_at_the_end_belongs_to_the_block_before() -> None:
    assert layout("1. Fill it.\n2.") == [("list_item", "1. Fill it.\n2.")]
    assert layout("-\n-") == [("list_item", "-\n-")]


def test_a_list_may_follow_its_introduction_without_a_blank_line() -> None:
    assert kinds("The steps are:\n1. Fill it.\n2. Close it.") == ["prose", "list_item", "list_item"]


def test_a_wrapped_line_that_starts_with_a_number_opens_no_item() -> None:
    text = "The engine was rebuilt by the works in the spring and its service number became\n12. it then ran for years"
    assert kinds(text) == ["prose"]


def test_a_table_has_a_heading_row_a_rule_and_rows() -> None:
    text = "| Drug | Dose |\n|:---|---:|\n| A | 5 mg |\n| B | 7 mg |\n\nDone."
    assert kinds(text) == ["heading", "table_rule", "table_row", "table_row", "prose"]


def test_a_table_needs_no_outer_pipes_if_a_rule_follows_its_first_row() -> None:
    assert kinds("Drug | Dose\n--- | ---\nA | 5 mg\nDone.") == ["heading", "table_rule", "table_row", "prose"]
    assert kinds("P(A | B) is small") == ["prose"]


def test_the_first_row_of_a_table_without_body_or_without_rule_is_a_row() -> None:
    assert kinds("| A | 5 mg |\n|---|---|") == ["table_row", "table_rule"]
    assert kinds("| A | 5 mg |\n| B | 7 mg |") == ["table_row", "table_row"]


def test_a_drawn_table_is_a_table() -> None:
    assert kinds("+---+---+\n| A | 5 |\n+---+---+") == ["table_rule", "table_row", "table_rule"]


def test_a_fence_ends_at_its_like_and_not_before() -> None:
    text = "Run:\n````py\n```\nx. Y\n~~~\n````\nDone."
    assert layout(text) == [("prose", "Run:\n"), ("code", "````py\n```\nx. Y\n~~~\n````\n"), ("prose", "Done.")]


def test_an_open_fence_runs_to_the_end() -> None:
    assert layout("~~~\nx\n\n# y\n\n- z") == [("code", "~~~\nx\n\n# y\n\n- z")]


def test_inline_code_in_three_backticks_opens_no_fence() -> None:
    assert kinds("```run``` starts it.\nand is quick.") == ["prose"]


def test_indented_lines_are_code_only_if_they_look_like_it() -> None:
    assert kinds("Run this:\n\n    x = f(1)\n    y = x\n\nDone.") == ["prose", "code", "prose"]
    assert kinds("Said so:\n\n    The (blue) drug is safe.\n\nDone.") == ["prose", "prose", "prose"]
    assert kinds("Run this:\n    x = f(1)") == ["prose"]


def test_wrapped_prose_is_one_block() -> None:
    text = "The old mill was bought by the family of the miller\nMartin Weber, who restored it over\nthe years."
    assert kinds(text) == ["prose"]
    # Each line after the first starts with a capital, but none would have fitted on the line before.
    assert kinds(
        "The mill lies on the river near the village of\nOberhausen, but belongs to the old family of the\nWebers."
    ) == ["prose"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Name: Ann Example", "Age: 52", "Town: Ulm"],
        [
            "Paris is the capital and the largest city of France",
            "It lies on the Seine",
            "Two million people live there",
        ],
        ["首都：巴黎", "人口：两百万", "河流：塞纳河"],
    ],
)
def test_a_claim_per_line_is_a_block_per_line(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert [content.strip() for _, content in layout(text)] == lines


@pytest.mark.parametrize(
    ("character", "kind"),
    [
        *(("*", "table_rule"), ("|", "table_rule"), ("-", "table_rule"), ("`", "code"), ("~", "code"), ("#", "prose")),
        *((" ", "prose"), ("\n", "prose"), (".", "prose"), ("\t", "prose"), ("\u2028", "prose"), ("😀", "prose")),
    ],
)
def test_a_megabyte_of_one_character_is_one_block(character: str, kind: str) -> None:
    assert [block.kind.value for block in parse_blocks(character * MEGABYTE)] == [kind]


def test_many_openings_are_read_once_each() -> None:
    assert len(parse_blocks("**a**\n\n" * 5_000)) == 5_000
    assert len(parse_blocks("    so.\n\n" * 5_000)) == 5_000
    assert len(parse_blocks("x\n\n    f()\n\n" * 5_000)) == 10_000
    assert len(parse_blocks("```\n" * 10_000)) == 5_000
    assert len(parse_blocks("-\n" * 25_000)) == 1
    assert len(parse_blocks("a\n" * 25_000)) == 1
