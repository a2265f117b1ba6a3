from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.adapters.said import Said, read_answer, read_question

CONSTRUCTOR: JsonValue = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "Hot.", "type": "ai", "id": "run-1", "response_metadata": {"model_name": "m-1"}},
}
DUMPED: JsonValue = {"content": "Hot.", "type": "ai", "id": "run-1", "response_metadata": {"model_name": "m-1"}}
PRINTED = "content='Hot.' additional_kwargs={} response_metadata={'model_name': 'm-1'} id='run-1' tool_calls=[]"
PRINTED_WHOLE = "AIMessage(content='Hot.', response_metadata={'model_name': 'm-1'}, id='run-1')"


@pytest.mark.parametrize("logged", [CONSTRUCTOR, DUMPED, PRINTED, PRINTED_WHOLE])
def test_a_message_of_langchain_says_its_content(logged: JsonValue) -> None:
    assert read_answer(logged) == Said("Hot.", None, "run-1", "m-1")


@pytest.mark.parametrize(
    "logged",
    [
        "Hot.",
        {"role": "assistant", "content": "Hot."},
        [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Hot."}],
        [{"type": "text", "text": "Hot."}],
        {"type": "output_text", "text": "Hot."},
        {"choices": [{"message": {"role": "assistant", "content": "Hot."}}]},
        ["Hot."],
    ],
)
def test_an_answer_in_any_form_says_its_text(logged: JsonValue) -> None:
    found = read_answer(logged)
    assert found is not None
    assert found.text == "Hot."


def test_parts_that_are_thoughts_are_apart() -> None:
    parts: JsonValue = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hot."}]
    assert read_answer(parts) == Said("Hot.", "Hm.")


@pytest.mark.parametrize(
    "logged",
    [
        "Is tea hot?",
        {"role": "user", "content": "Is tea hot?"},
        [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": "Is tea hot?"}]},
        ],
        {"messages": [{"type": "human", "content": "Is tea hot?"}]},
        [{"type": "text", "text": "Is tea hot?"}, {"type": "image_url", "image_url": {"url": "data:"}}],
    ],
)
def test_a_question_in_any_form_says_its_text(logged: JsonValue) -> None:
    assert read_question(logged) == Said("Is tea hot?")


@pytest.mark.parametrize(
    "logged", [5, True, {"text": "Hot."}, ["Hot.", "Cold."], {}, [], [5], "content='Hot. additional_kwargs={}"]
)
def test_what_is_no_answer_is_none(logged: JsonValue) -> None:
    assert read_answer(logged) is None


def test_a_text_that_only_looks_printed_is_a_text() -> None:
    assert read_answer("content='a' is how it starts") == Said("content='a' is how it starts")
