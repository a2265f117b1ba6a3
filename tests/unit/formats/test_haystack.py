from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.unit.formats.exchanges import detail_of, facts, read

Row = dict[str, JsonValue]
HOT: Row = {
    "id": "d1",
    "content": "Tea is hot.",
    "blob": None,
    "meta": {"file": "tea.md"},
    "score": 0.5,
    "embedding": None,
}
COLD: Row = {"id": "d2", "content": "Milk is cold.", "file": "milk.md", "score": 0.4}
ANSWER: Row = {"data": "Yes.", "query": "Is tea hot?", "documents": [HOT], "meta": {"model": "m-1"}}
EXPECTED = ("Is tea hot?", "Yes.", [("d1", "Tea is hot.", 0.5)])


@pytest.mark.parametrize(
    "row",
    [
        ANSWER,
        {"type": "haystack.dataclasses.answer.GeneratedAnswer", "init_parameters": ANSWER},
        {"answer_builder": {"answers": [ANSWER]}},
        {"retriever": {"documents": [COLD]}, "answer_builder": {"answers": [ANSWER, {**ANSWER, "data": "Other try."}]}},
        {"query": "Is tea hot?", "answers": [{"answer": "Yes.", "type": "generative"}], "documents": [HOT]},
    ],
)
def test_an_answer_is_read_alone_and_out_of_a_result(row: Row) -> None:
    interaction = read(row, "haystack")
    assert facts(interaction) == EXPECTED
    assert interaction.passages[0].metadata in ({"file": "tea.md"}, {})


def test_the_model_is_that_of_the_answer() -> None:
    assert read(ANSWER, "haystack").generator_model == "m-1"


@pytest.mark.parametrize(
    ("components", "ids"),
    [
        ({"retriever": {"documents": [HOT]}}, ["d1"]),
        ({"bm25": {"documents": [HOT]}, "dense": {"documents": [HOT, COLD]}}, ["d1", "d2"]),
        ({"retriever": {"documents": [HOT, COLD]}, "ranker": {"documents": [COLD]}}, ["d2"]),
    ],
)
def test_replies_without_an_answer_builder_have_the_documents_of_the_other_components(
    components: Row, ids: list[str]
) -> None:
    interaction = read({**components, "llm": {"replies": ["Yes.", "Ja."], "meta": [{"model": "m-1"}]}}, "haystack")
    assert ([one.id for one in interaction.passages], interaction.answer) == (ids, "Yes.")
    assert (interaction.question, interaction.metadata["question"]) == ("", "absent")
    assert interaction.generator_model == "m-1"


@pytest.mark.parametrize(
    "reply",
    [
        {"role": "assistant", "meta": {}, "name": None, "content": [{"text": "Yes."}]},
        {"_role": "assistant", "_content": [{"text": "Yes."}], "_name": None, "_meta": {}},
    ],
)
def test_a_reply_of_a_chat_generator_and_the_question_beside_it_are_read(reply: JsonValue) -> None:
    row: JsonValue = {"query": "Is tea hot?", "retriever": {"documents": [HOT]}, "llm": {"replies": [reply]}}
    assert facts(read(row, "haystack")) == EXPECTED


def test_an_extracted_answer_stands_in_its_document() -> None:
    row: JsonValue = {"reader": {"answers": [{"data": "Yes.", "query": "Is tea hot?", "document": HOT, "score": 0.9}]}}
    assert facts(read(row, "haystack")) == EXPECTED


def test_an_answer_without_documents_has_those_of_the_retriever() -> None:
    row: Row = {"retriever": {"documents": [HOT]}, "builder": {"answers": [{**ANSWER, "documents": []}]}}
    assert facts(read({**row, "metadata": {"user": "u"}}, "haystack")) == EXPECTED
    assert read({**ANSWER, "documents": [], "metadata": {"user": "u"}}, "haystack").metadata == {
        "user": "u",
        "model": "m-1",
    }


def test_replies_without_any_documents_are_refused() -> None:
    assert detail_of({"llm": {"replies": ["Yes."], "meta": []}}).startswith("documents: missing")
