from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.unit.formats.exchanges import detail_of, facts, read, results_of

Row = dict[str, JsonValue]
INPUT: Row = {"input": "Is tea hot?", "context": ["Ideal."]}
SNAKE: Row = {**INPUT, "actual_output": "Yes.", "retrieval_context": ["Tea is hot."]}
CAMEL: Row = {**INPUT, "actualOutput": "Yes.", "retrievalContext": ["Tea is hot."]}
EXPECTED = ("Is tea hot?", "Yes.", [("ctx-1", "Tea is hot.", None)])


@pytest.mark.parametrize("row", [SNAKE, CAMEL])
def test_a_test_case_is_read_without_its_ideal_context(row: Row) -> None:
    interaction = read(row, "deepeval")
    assert facts(interaction) == EXPECTED
    assert interaction.metadata == {"context": ["Ideal."]}


@pytest.mark.parametrize("row", [{**SNAKE, "retrieval_context": None}, {**CAMEL, "retrievalContext": []}])
def test_the_ideal_context_never_stands_in_for_one_that_is_empty(row: Row) -> None:
    assert facts(read(row, "deepeval"))[2] == []


def test_the_ideal_context_never_stands_in_for_one_that_is_missing() -> None:
    row = {name: value for name, value in SNAKE.items() if name != "retrieval_context"}
    assert "looks like a DeepEval test case; has input, context, actual_output" in detail_of(row)


def saved(joined: str) -> Row:
    return {**SNAKE, "retrieval_context": joined, "source_file": None}


@pytest.mark.parametrize(
    ("joined", "texts"),
    [
        ("Tea is hot.|Cups are warm.", ["Tea is hot.", "Cups are warm."]),
        ("Tea is hot.", ["Tea is hot."]),
        ("Is it?|“Yes.”|So", ["Is it?", "“Yes.”", "So"]),
    ],
)
def test_passages_that_were_joined_are_parted_where_the_bar_surely_joins(joined: str, texts: list[str]) -> None:
    assert [one.text for one in read(saved(joined), "deepeval").passages] == texts


@pytest.mark.parametrize("joined", ["a | b", "Use a|b.|Then c.", "|a|b|", "Tea is hot. |Cups.", "a||b"])
def test_passages_that_may_hold_the_bar_are_refused(joined: str) -> None:
    assert detail_of(saved(joined)).startswith('retrieval_context: passages joined with "|"')


def test_a_text_with_a_bar_that_deepeval_did_not_join_is_one_passage() -> None:
    assert facts(read({**SNAKE, "retrieval_context": "a | b"}, "deepeval"))[2] == [("ctx-1", "a | b", None)]


@pytest.mark.parametrize("name", ["retrieval_context", "retrievalContext"])
def test_each_turn_of_a_conversation_has_its_passages(name: str) -> None:
    turns: JsonValue = [
        {"role": "user", "content": "Is tea hot?"},
        {"role": "assistant", "content": "Yes.", name: ["Tea is hot."]},
        {"role": "user", "content": "And milk?"},
        {"role": "assistant", "content": "Cold.", name: ["Milk is cold."]},
    ]
    results = results_of({"turns": turns, "scenario": "s"})
    assert [getattr(one, "adapter", None) for one in results] == ["deepeval", "deepeval"]
