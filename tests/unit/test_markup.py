"""Where tags part a text: elements of HTML, and what a model thought."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.markup import regions
from gasp_core.text.sentences import split_answer

TAGS = [
    *("<p>", "</p>", "<br>", "<br/>", "<ul>", "</ul>", "<li>", "</li>", "<table>", "</table>", "<tr>", "</tr>", "<td>"),
    *("</td>", "<th>", "</th>", "<h2>", "</h2>", "<pre>", "</pre>", "<b>", "</b>", "<think>", "</think>", "<thinking>"),
    *("</reasoning>", "[THINK]", "[/THINK]", "```", "`", "|", "- ", "It rains. ", "word ", " ", "\n", "\n\n", "<", ">"),
]


def units(text: str) -> list[tuple[str, str]]:
    return [(unit.kind.value, text[unit.start : unit.end].strip()) for unit in split_answer(text)]


@given(st.lists(st.sampled_from(TAGS), max_size=30).map("".join))
def test_regions_and_units_tile_a_text_of_tags(text: str) -> None:
    for found in (regions(text), split_answer(text)):
        assert "".join(text[one.start : one.end] for one in found) == text
    assert all(region.start <= region.body <= region.end for region in regions(text))
    assert all(unit.start < unit.end for unit in split_answer(text))


def test_an_item_and_a_paragraph_are_cut_into_sentences_and_a_row_is_one_unit() -> None:
    text = (
        "<h2>Effects</h2><p>It rains. It pours.</p><ul>\n <li>Nausea</li>\n <li><p>Pain. Fever.</p></li>\n</ul>\n"
        "<table><tr><th>A</th><th>B</th></tr><tr><td>It rains.</td><td>5 mg<br>daily</td></tr></table> End.<br>Done."
    )
    assert units(text) == [
        ("heading", "<h2>Effects</h2>"),
        ("prose", "<p>It rains."),
        ("prose", "It pours.</p>"),
        ("list_item", "<ul>\n <li>Nausea</li>"),
        ("list_item", "<li><p>Pain."),
        ("list_item", "Fever.</p></li>\n</ul>"),
        ("heading", "<table><tr><th>A</th><th>B</th></tr>"),
        ("table_row", "<tr><td>It rains.</td><td>5 mg<br>daily</td></tr></table>"),
        ("prose", "End.<br>"),
        ("prose", "Done."),
    ]


def test_a_row_over_several_lines_is_one_unit() -> None:
    text = "<table>\n<tr>\n<td>A</td>\n<td>5 mg</td>\n</tr>\n<tr><th>B</th><td>7 mg</td></tr></table>"
    assert [kind for kind, _ in units(text)] == ["table_row", "table_row"]


@pytest.mark.parametrize(
    "text",
    [
        "The <p> tag opens a paragraph.",
        "Write `<li>x</li>` for an item.",
        "x < y and y > z.",
        "A <b>bold</b> claim.",
        "The <think> tag opens what a model thought.",
        "Put it between `<think>` and `</think>` then.",
    ],
)
def test_tags_that_are_only_named_part_nothing(text: str) -> None:
    assert units(text) == [("prose", text)]


def test_tags_in_code_and_in_rows_of_markdown_part_nothing() -> None:
    assert units("```html\n<ul><li>x</li></ul>\n```\nDone.") == [
        ("code", "```html\n<ul><li>x</li></ul>\n```"),
        ("prose", "Done."),
    ]
    assert [kind for kind, _ in units("| a<br>b | c |\n|---|---|\n| d<br>e | f |")] == [
        *("heading", "table_rule", "table_row"),
    ]
    assert units("<pre>a\n\nb</pre><p>Done.</p>") == [("code", "<pre>a\n\nb</pre>"), ("prose", "<p>Done.</p>")]


@pytest.mark.parametrize(
    "thought",
    [
        "<think>Let me see. Yes.</think>",
        "<thinking>\nLet me see.\n\n- Yes.\n</thinking>",
        "<reasoning>One <reasoning>two</reasoning> three.</reasoning>",
        "[THINK]Let me see.[/THINK]",
        "<THINK>It is <b>so</b>.</THINK>",
    ],
)
def test_what_a_model_thought_is_one_unit(thought: str) -> None:
    assert units(f"It rains. {thought} It pours.") == [
        ("prose", "It rains."),
        ("thought", thought),
        ("prose", "It pours."),
    ]


def test_a_thought_without_an_end_goes_on_to_the_end_and_one_without_a_beginning_from_it() -> None:
    assert units("It rains.\n<think>Hm. What?\n\nYes.") == [
        ("prose", "It rains."),
        ("thought", "<think>Hm. What?\n\nYes."),
    ]
    assert units("Hm. What?\n</think>\nIt rains.") == [("thought", "Hm. What?\n</think>"), ("prose", "It rains.")]


@pytest.mark.parametrize(
    "unit", [*TAGS, "<think>a</think>", "<thinking><think>a", "<li>A. B\n\n", "a <p> b. ", "|<p>\n"]
)
def test_a_long_run_of_tags_is_read(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert "".join(text[one.start : one.end] for one in split_answer(text)) == text
