from __future__ import annotations

from pydantic import JsonValue

from tests.unit.formats.exchanges import detail_of, facts, read

NODE: dict[str, JsonValue] = {
    "node": {
        "id_": "n1",
        "embedding": None,
        "metadata": {"file": "tea.md"},
        "text": "Tea is hot.",
        "class_name": "TextNode",
    },
    "score": 0.5,
    "class_name": "NodeWithScore",
}
PASSAGES = [("n1", "Tea is hot.", 0.5)]


def test_a_response_is_read_and_says_that_its_question_is_absent() -> None:
    interaction = read(
        {"response": "Yes.", "source_nodes": [NODE], "metadata": {"n1": {"file": "tea.md"}}}, "llamaindex"
    )
    assert facts(interaction) == ("", "Yes.", PASSAGES)
    assert interaction.metadata == {"question": "absent", "n1": {"file": "tea.md"}}


def test_the_question_that_the_caller_logs_beside_it_is_read() -> None:
    assert facts(read({"query": "Is tea hot?", "response": "Yes.", "source_nodes": [NODE]}, "llamaindex")) == (
        "Is tea hot?",
        "Yes.",
        PASSAGES,
    )


def test_a_response_under_a_name_of_the_callers_is_read() -> None:
    row: JsonValue = {"question": "Is tea hot?", "response": {"response": "Yes.", "source_nodes": [NODE]}}
    assert facts(read(row, "inputs_outputs")) == ("Is tea hot?", "Yes.", PASSAGES)


def test_a_response_of_javascript_is_read() -> None:
    row: JsonValue = {"message": {"role": "assistant", "content": "Yes."}, "sourceNodes": [NODE], "query": "Q"}
    assert facts(read(row, "llamaindex")) == ("Q", "Yes.", PASSAGES)


def test_a_newer_node_has_its_text_in_a_resource() -> None:
    node: JsonValue = {"node": {"id_": "n1", "text_resource": {"text": "Tea is hot."}, "metadata": {}}, "score": 0.5}
    assert facts(read({"response": "Yes.", "source_nodes": [node]}, "llamaindex"))[2] == PASSAGES


def test_the_tools_of_a_chat_engine_gave_the_nodes() -> None:
    sources: JsonValue = [
        {"tool_name": "query", "content": "Hot.", "raw_output": {"response": "Hot.", "source_nodes": [NODE]}},
        {"tool_name": "clock", "content": "It is noon.", "raw_output": 12},
    ]
    row: JsonValue = {"query": "Q", "response": "Yes.", "sources": sources, "source_nodes": []}
    assert facts(read(row, "llamaindex"))[2] == [*PASSAGES, ("ctx-2", "It is noon.", None)]


def test_a_printed_node_is_refused_because_it_is_shortened() -> None:
    row: JsonValue = {"response": "Yes.", "source_nodes": ["Node ID: n1\nText: Tea is...\nScore:  0.500\n"]}
    assert detail_of(row).startswith("source_nodes.0: is a print of a LlamaIndex node, which is shortened")
