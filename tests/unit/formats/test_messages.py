from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import JsonValue

from schemas.traces.messages import Message, Role, last_answer, last_question, read_messages
from tests.unit.formats.json_values import ANYTHING


def only(logged: JsonValue) -> Message:
    (message,) = read_messages(logged)
    return message


def constructor(name: str, **kwargs: JsonValue) -> JsonValue:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


@pytest.mark.parametrize(
    "logged",
    [
        {"role": "user", "content": "Is it open?"},
        {"role": "user", "parts": [{"type": "text", "content": "Is it open?"}], "name": None},
        {"role": "user", "content": [{"type": "text", "text": "Is it open?"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Is it open?"}]},
        {"role": "user", "content": [{"text": "Is it open?"}]},
        {"role": "user", "content": {"type": "text", "text": "Is it open?"}},
        {"role": "user", "content": ["Is it open?"]},
        {"role": "USER", "parts": [{"text": "Is it open?"}]},
        {"role": "MessageRole.USER", "blocks": [{"block_type": "text", "text": "Is it open?"}]},
        {"_role": "user", "_content": [{"text": "Is it open?"}], "_meta": {}},
        {"type": "human", "content": "Is it open?", "additional_kwargs": {}},
        {"type": "human", "data": {"content": "Is it open?", "additional_kwargs": {}}},
        {"role": "user", "content": "Is it open?", "parts": [{"type": "text", "text": "Is it open?"}]},
        constructor("HumanMessage", content="Is it open?", type="human"),
        constructor("HumanMessageChunk", content="Is it open?"),
        ["human", "Is it open?"],
        {"message": {"role": "user", "content": "Is it open?"}},
    ],
)
def test_each_form_of_a_message_says_the_same(logged: JsonValue) -> None:
    wrappings: list[JsonValue] = [logged, [logged], [[logged]], {"messages": [logged]}]
    for wrapped in wrappings:
        assert read_messages(wrapped) == (Message(Role.USER, ("Is it open?",)),)


@pytest.mark.parametrize(
    "logged",
    [
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}]},
        {"generations": [[{"text": "Yes.", "generation_info": {"finish_reason": "stop"}, "type": "Generation"}]]},
        {"generations": [[{"text": "Yes.", "message": constructor("AIMessage", content="Yes.", type="ai")}]]},
        [[{"text": "Yes.", "generation_info": None, "message": {"content": "Yes.", "type": "AIMessageChunk"}}]],
        {"role": "model", "parts": [{"text": "Yes."}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Yes."}],
        },
    ],
)
def test_what_holds_a_models_messages_is_opened(logged: JsonValue) -> None:
    assert read_messages(logged) == (Message(Role.ASSISTANT, ("Yes.",)),)


@pytest.mark.parametrize(
    ("role", "spoken"),
    [("system", Role.SYSTEM), ("developer", Role.SYSTEM), ("function", Role.TOOL), ("CHATBOT", Role.ASSISTANT)],
)
def test_roles_have_many_names(role: str, spoken: Role) -> None:
    assert only({"role": role, "content": "Hm."}).role is spoken


@pytest.mark.parametrize(
    "logged",
    [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "So…"}, {"type": "text", "text": "Yes."}]},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "So…"}, {"type": "text", "text": "Yes."}]},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "So…"}, {"type": "text", "content": "Yes."}]},
        {"role": "model", "parts": [{"text": "So…", "thought": True}, {"text": "Yes."}]},
        {"role": "assistant", "content": "Yes.", "reasoning_content": "So…"},
        {"type": "ai", "content": "Yes.", "additional_kwargs": {"reasoning_content": "So…"}},
        {
            "role": "assistant",
            "content": [{"reasoningContent": {"reasoningText": {"text": "So…", "signature": "x"}}}, {"text": "Yes."}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "So…"}]},
                {"type": "output_text", "text": "Yes."},
            ],
        },
    ],
)
def test_thoughts_are_no_part_of_the_text(logged: JsonValue) -> None:
    message = only(logged)
    assert (message.text, message.thoughts) == ("Yes.", "So…")


@pytest.mark.parametrize(
    "logged",
    [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{"id": "1", "function": {"name": "find"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "1"}]},
        {"role": "assistant", "content": [{"text": "Let me see."}, {"toolUse": {"name": "find"}}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Let me see."}, {"type": "tool_call", "id": "1"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, {"type": "tool-call"}]},
        {"type": "ai", "content": "Let me see.", "additional_kwargs": {"function_call": {"name": "find"}}},
    ],
)
def test_what_asks_for_tools_is_no_answer(logged: JsonValue) -> None:
    assert only(logged).calls_tools
    assert last_answer(read_messages(logged)) is None


def test_no_calls_are_no_calls() -> None:
    assert not only({"type": "ai", "content": "Yes.", "tool_calls": [], "invalid_tool_calls": []}).calls_tools


@pytest.mark.parametrize(
    "logged",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Open until 6."}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "Open until 6."}]}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "Open until 6."}]},
        {"role": "tool", "content": "Open until 6.", "tool_call_id": "1"},
    ],
)
def test_what_a_tool_gave_is_not_what_the_user_said(logged: JsonValue) -> None:
    assert only(logged) == Message(Role.TOOL, ("Open until 6.",))
    assert last_question(read_messages(logged)) is None


def test_a_tools_artifact_and_a_messages_id_are_kept() -> None:
    message = only({"type": "tool", "content": "2 found", "id": "m-1", "artifact": [{"page_content": "Open."}]})
    assert (message.id, message.artifact) == ("m-1", [{"page_content": "Open."}])


def test_question_and_answer_are_the_last_that_say_something() -> None:
    conversation = read_messages(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Is it open?"},
            {"role": "assistant", "content": "Yes."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Context: …"}, {"type": "text", "text": "Until when?"}],
            },
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "Closes at 6."},
            {"role": "assistant", "content": [{"type": "text", "text": "Until "}, {"type": "text", "text": "6."}]},
            {"role": "user", "content": "  "},
        ]
    )
    assert last_question(conversation) == "Context: …\nUntil when?"
    answer = last_answer(conversation)
    assert answer is not None
    assert answer.text == "Until 6."


@pytest.mark.parametrize("logged", [None, 1, "Yes.", [], ["Yes."], {"content": "Yes."}, {"type": "text", "text": "Hm"}])
def test_what_does_not_say_who_speaks_is_no_message(logged: JsonValue) -> None:
    assert read_messages(logged) == ()


def test_pictures_and_files_say_nothing() -> None:
    picture: JsonValue = {"type": "image_url", "image_url": {"url": "data:…"}, "text": "no"}
    assert (
        only({"role": "user", "content": [picture, {"type": "text", "text": "What is this?"}]}).text == "What is this?"
    )


@given(ANYTHING)
def test_any_json_is_read(logged: JsonValue) -> None:
    for message in read_messages(logged):
        assert all(isinstance(text, str) for text in message.texts)
