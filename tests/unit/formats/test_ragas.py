from __future__ import annotations

from pydantic import JsonValue

from tests.unit.formats.exchanges import detail_of, facts, read


def test_a_sample_is_read_with_the_ids_that_run_beside_its_contexts() -> None:
    row: JsonValue = {
        "user_input": "Is tea hot?",
        "retrieved_contexts": ["Tea is hot.", "Cups are warm."],
        "retrieved_context_ids": ["d1", 2],
        "reference_contexts": ["Ideal."],
        "response": "Yes.",
        "reference": "Hot.",
    }
    interaction = read(row, "ragas")
    assert facts(interaction) == ("Is tea hot?", "Yes.", [("d1", "Tea is hot.", None), ("2", "Cups are warm.", None)])
    assert interaction.metadata == {"reference_contexts": ["Ideal."], "reference": "Hot."}


def test_what_should_have_been_retrieved_never_stands_in() -> None:
    row: JsonValue = {"user_input": "Q", "response": "A", "reference_contexts": ["Ideal."]}
    assert "looks like a Ragas sample" in detail_of(row)


def test_a_conversation_has_the_passages_of_its_tools() -> None:
    row: JsonValue = {
        "user_input": [
            {"content": "Is tea hot?", "type": "human"},
            {"content": "", "type": "ai", "tool_calls": [{"name": "search", "args": {}}]},
            {"content": "Tea is hot.", "type": "tool"},
            {"content": "Yes.", "type": "ai"},
        ],
        "reference": "x",
    }
    assert facts(read(row, "ragas")) == ("Is tea hot?", "Yes.", [("ctx-1", "Tea is hot.", None)])


def test_a_conversation_without_passages_is_refused() -> None:
    row: JsonValue = {"user_input": [{"content": "Q", "type": "human"}, {"content": "A", "type": "ai"}]}
    assert detail_of(row) == (
        "user_input: no tool's message among them, and no passages beside them; looks like a Ragas sample"
    )
