from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.unit.formats.exchanges import constructor, detail_of, facts, named, read

TEXT = "Tea is served hot."
DUMPED = named("d1", TEXT, score=0.5)
CONSTRUCTED = constructor("Document", **DUMPED)
PRINTED = f"page_content='{TEXT}' metadata={{'_id': 'd1', 'relevance_score': 0.5}}"
WITHOUT_ID = named(None, TEXT, _id="d1", relevance_score=0.5)
JAVASCRIPT: JsonValue = {"pageContent": TEXT, "metadata": {"id": "d1", "score": 0.5}}
EXPECTED = ("Is tea hot?", "Yes, hot.", [("d1", TEXT, 0.5)])


@pytest.mark.parametrize("document", [DUMPED, CONSTRUCTED, PRINTED, WITHOUT_ID, JAVASCRIPT])
@pytest.mark.parametrize(
    ("question", "answer", "passages"),
    [
        ("input", "answer", "context"),
        ("question", "answer", "context"),
        ("query", "result", "source_documents"),
        ("question", "answer", "source_documents"),
        ("question", "output_text", "input_documents"),
        ("question", "text", "sourceDocuments"),
        ("question", "generation", "documents"),
    ],
)
def test_the_results_of_chains_are_read(question: str, answer: str, passages: str, document: JsonValue) -> None:
    row: JsonValue = {question: "Is tea hot?", answer: "Yes, hot.", passages: [document]}
    assert facts(read(row, "langchain")) == EXPECTED


@pytest.mark.parametrize(
    "answer",
    [
        {"content": "Yes, hot.", "type": "ai", "id": "run-1", "response_metadata": {"model_name": "m-1"}},
        constructor("AIMessage", content="Yes, hot.", id="run-1", response_metadata={"model_name": "m-1"}),
        "content='Yes, hot.' additional_kwargs={} response_metadata={'model_name': 'm-1'} id='run-1'",
    ],
)
def test_an_answer_that_is_a_message_names_exchange_and_model(answer: JsonValue) -> None:
    interaction = read({"question": "Is tea hot?", "context": [DUMPED], "answer": answer}, "langchain")
    assert facts(interaction) == EXPECTED
    assert (interaction.interaction_id, interaction.generator_model) == ("run-1", "m-1")


def test_the_context_that_the_prompt_had_does_not_stand_for_the_documents() -> None:
    row: JsonValue = {"input": "Q", "context": TEXT, "source_documents": [DUMPED], "answer": "A"}
    interaction = read(row, "langchain")
    assert facts(interaction)[2] == EXPECTED[2]
    assert interaction.metadata == {"context": TEXT}


def test_what_the_tools_of_an_agent_gave_are_its_passages() -> None:
    action = constructor("AgentAction", tool="search", tool_input="tea", log="")
    plain: JsonValue = {"tool": "search", "tool_input": "tea", "log": "", "type": "AgentAction"}
    row: JsonValue = {
        "input": "Is tea hot?",
        "output": "Yes, hot.",
        "intermediate_steps": [[action, [CONSTRUCTED]], [plain, "Cups are warm."]],
    }
    assert facts(read(row, "langchain"))[2] == [("d1", TEXT, 0.5), ("ctx-2", "Cups are warm.", None)]


def test_a_list_that_was_printed_as_one_text_is_read() -> None:
    printed = f"[Document(id='d1', metadata={{'score': 0.5}}, page_content='{TEXT}')]"
    row: JsonValue = {"input": "Is tea hot?", "answer": "Yes, hot.", "context": printed}
    assert facts(read(row, "langchain")) == EXPECTED


def test_a_print_that_was_cut_off_is_refused() -> None:
    row: JsonValue = {"input": "Q", "answer": "A", "context": ["page_content='Tea is"]}
    assert detail_of(row).startswith("context.0: is a print of a LangChain document, not whole")
