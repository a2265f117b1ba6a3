from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from pydantic import JsonValue

from schemas.traces.messages import Message, Role
from schemas.traces.texts import answer_in, question_in
from tests.unit.formats.json_values import ANYTHING

DOCUMENT: JsonValue = {"page_content": "Open until 6.", "text": "Open until 6.", "id": "d-1", "metadata": {}}


def said(logged: JsonValue) -> str | None:
    answer = answer_in(logged)
    return answer.text if answer else None


@pytest.mark.parametrize(
    "logged",
    [
        "Is it open?",
        {"input": "Is it open?"},
        {"input": {"question": "Is it open?"}},
        {"question": "Is it open?", "context": "Open until 6."},
        {"question": "", "query": "Is it open?"},
        {"input": "Is it open?", "chat_history": [{"role": "user", "content": "Hello"}]},
        {"inputs": {"input": "Is it open?"}, "tags": [], "kwargs": {"name": "chain"}},
        {"args": ["Is it open?"], "kwargs": {}},
        {"args": [], "kwargs": {"whatever": "Is it open?"}},
        {"str_or_query_bundle": {"query_str": "Is it open?", "image_path": None}},
        {"messages": [{"role": "user", "content": "Is it open?"}]},
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it open?"}],
        ["Is it open?"],
        {"what_to_ask": "Is it open?", "top_k": 3},
        {"data": {"retriever": {"query": "Is it open?"}, "prompt_builder": {"question": "Is it open?"}}},
        {"args": [], "kwargs": {"retriever": {"query": "Is it open?"}, "answer_builder": {"query": "Is it open?"}}},
    ],
)
def test_a_question_is_found_under_the_names_that_programs_use(logged: JsonValue) -> None:
    assert question_in(logged) == "Is it open?"
    assert question_in(orjson.dumps(logged).decode()) == "Is it open?"


@pytest.mark.parametrize(
    "logged",
    [
        None,
        7,
        " ",
        {},
        [],
        {"one": "Is it open?", "other": "Is it closed?"},
        ["Is it open?", "Is it closed?"],
        [DOCUMENT],
        {"data": {"retriever": {"query": "Is it open?"}, "other": {"query": "Is it closed?"}}},
        {"messages": [{"role": "assistant", "content": "Yes."}]},
    ],
)
def test_what_is_not_clearly_a_question_is_none(logged: JsonValue) -> None:
    assert question_in(logged) is None


@pytest.mark.parametrize(
    "logged",
    [
        "Yes.",
        {"answer": "Yes."},
        {"query": "Is it open?", "result": "Yes.", "source_documents": [DOCUMENT]},
        {"input": "Is it open?", "context": [DOCUMENT], "answer": "Yes."},
        {"outputs": {"answer": "Yes."}, "kwargs": {"tags": []}},
        {"choices": [{"message": {"role": "assistant", "content": "Yes."}}], "model": "m"},
        {"generations": [[{"text": "Yes.", "generation_info": None}]]},
        {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "Yes."}},
        {"messages": [{"type": "human", "content": "Is it open?"}, {"type": "ai", "content": "Yes."}]},
        {"content": [{"type": "text", "text": "Yes."}], "role": "assistant"},
        {"response": "Yes.", "metadata": {}},
        ["Yes."],
        {"final": "Yes."},
        {"answer_builder": {"answers": [{"data": "Yes.", "query": "Is it open?", "documents": [DOCUMENT]}]}},
        {"llm": {"replies": ["Yes."]}, "retriever": {"documents": [DOCUMENT]}},
    ],
)
def test_an_answer_is_found_under_the_names_that_programs_use(logged: JsonValue) -> None:
    assert said(logged) == "Yes."
    assert said(orjson.dumps(logged).decode()) == "Yes."


@pytest.mark.parametrize(
    "logged",
    [
        None,
        7,
        " ",
        {},
        [DOCUMENT],
        {"documents": [DOCUMENT]},
        {"context": [DOCUMENT]},
        {"one": "Yes.", "other": "No."},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{"id": "1"}]},
    ],
)
def test_what_is_not_clearly_an_answer_is_none(logged: JsonValue) -> None:
    assert said(logged) is None


def test_thoughts_come_with_the_answer_apart_from_it() -> None:
    logged: JsonValue = {"output": {"role": "assistant", "content": "Yes.", "reasoning_content": "So…"}}
    assert answer_in(logged) == Message(Role.ASSISTANT, ("Yes.",), "So…")


@given(ANYTHING)
def test_any_json_is_read(logged: JsonValue) -> None:
    question_in(logged)
    answer_in(logged)


@pytest.mark.parametrize(
    "printed",
    [
        "GeneratedAnswer(data='Until 6.', query='Is it open?')",
        "Prediction(\n    answer='Until 6.'\n)",
        "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[])",
        "content='Until 6.' additional_kwargs={} response_metadata={}",
        "<NodeWithScore(node=TextNode(id_=d-1), score=0.83)>",
        "<2-dimensional vector>",
        "<ChatRole.USER: <x>>",
        "{'question': 'Is it open?'}",
        "['Is it open?']",
        '{"question": "Is it op',
        '[{"question": "Is it op',
    ],
)
def test_what_was_printed_of_an_object_and_json_that_was_cut_are_no_texts(printed: str) -> None:
    fields: JsonValue = {"input": printed, "output": printed}
    component: JsonValue = {"data": {"one": {"query": printed, "answers": [printed]}}}
    shapes: list[JsonValue] = [printed, [printed], fields, component]
    for logged in shapes:
        assert question_in(logged) is None
        assert answer_in(logged) is None


@pytest.mark.parametrize(
    "text",
    ["f(x=2) is 4.", "[1] Until 6.", "(Until 6.)", "<b>Until</b> 6.", "Dense(units=64) has 64.", "{x} is a set."],
)
def test_a_text_with_brackets_is_a_text(text: str) -> None:
    assert question_in({"query": text}) == said({"answer": text}) == text


def test_options_of_a_pipeline_are_not_its_question() -> None:
    data: JsonValue = {"retriever": {"embedding": [1.0]}, "prompt_builder": {"query": "Is it open?"}}
    assert question_in({"data": data, "include_outputs_from": "{'retriever'}"}) == "Is it open?"
