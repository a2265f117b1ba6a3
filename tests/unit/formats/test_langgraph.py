from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.decoding import Decoded, Skipped
from schemas.skip_reason import SkipReason
from tests.unit.formats.exchanges import constructor, detail_of, facts, named, read, results_of, skipped

Row = dict[str, JsonValue]
DOCUMENT = named("d1", "Tea is served hot.")


def human(text: JsonValue, **more: JsonValue) -> Row:
    return {"type": "human", "content": text, **more}


def model(text: JsonValue, message_id: str | None = None, **more: JsonValue) -> Row:
    return {"type": "ai", "content": text, "id": message_id, "tool_calls": [], **more}


def tool(text: str, *documents: JsonValue, **more: JsonValue) -> Row:
    return {"type": "tool", "name": "search", "content": text, "artifact": [*documents] or None, **more}


ASKS = model("", tool_calls=[{"name": "search", "args": {}, "id": "c1"}])
TURN: list[JsonValue] = [human("Is tea hot?"), ASKS, tool("Tea is served hot.", DOCUMENT), model("Yes.", "m1")]


def test_the_documents_of_a_tool_support_the_answer_behind_it() -> None:
    interaction = read({"messages": TURN}, "langgraph")
    assert facts(interaction) == ("Is tea hot?", "Yes.", [("d1", "Tea is served hot.", None)])
    assert interaction.interaction_id == "m1"


def test_messages_as_constructors_are_the_same() -> None:
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    messages: list[JsonValue] = [constructor(names[str(one["type"])], **one) for one in TURN if isinstance(one, dict)]
    assert facts(read({"messages": messages}, "langgraph")) == facts(read({"messages": TURN}, "langgraph"))


def test_a_tool_without_documents_gave_its_text() -> None:
    row: JsonValue = {"messages": [human("Q"), ASKS, tool("Tea is hot."), tool("Cups, too."), model("A")]}
    interaction = read(row, "langgraph")
    assert facts(interaction)[2] == [("ctx-1", "Tea is hot.", None), ("ctx-2", "Cups, too.", None)]
    assert interaction.passages[0].metadata == {"tool": "search"}


def test_documents_in_the_text_of_a_tool_are_documents() -> None:
    text = orjson.dumps([{"id": "d1", "text": "Tea is hot.", "score": 0.5}]).decode()
    row: JsonValue = {"messages": [human("Q"), ASKS, tool(text), model("A")]}
    assert facts(read(row, "langgraph"))[2] == [("d1", "Tea is hot.", 0.5)]


def test_a_tool_that_failed_gave_nothing_and_what_is_found_twice_counts_once() -> None:
    failed = tool("Error: away", status="error")
    again = tool("Tea is served hot.", DOCUMENT)
    row: JsonValue = {"messages": [human("Q"), ASKS, failed, ASKS, again, again, model("A")]}
    assert facts(read(row, "langgraph"))[2] == [("d1", "Tea is served hot.", None)]


def test_messages_of_a_chat_api_are_read() -> None:
    calls: JsonValue = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    row: JsonValue = {
        "id": "r1",
        "app": "bot",
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": "Is tea hot?"}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "Tea is hot."},
            {"role": "assistant", "content": "Yes."},
        ],
    }
    interaction = read(row, "langgraph")
    assert facts(interaction) == ("Is tea hot?", "Yes.", [("ctx-1", "Tea is hot.", None)])
    assert (interaction.interaction_id, interaction.app, interaction.generator_model) == ("r1", "bot", "m-1")


def test_each_answered_turn_is_an_exchange_of_its_own() -> None:
    second: list[JsonValue] = [human("And milk?"), ASKS, tool("Milk is cold."), model("Cold.", "m2")]
    third: list[JsonValue] = [human("Thanks."), model("Welcome.", "m3")]
    open_one: list[JsonValue] = [human("Bye?")]
    row: JsonValue = {"messages": [*TURN, *second, *third, *open_one], "thread_id": "t", "latency": 3}
    results = results_of(row)
    read_ones = [one.interaction for one in results if isinstance(one, Decoded)]
    assert [facts(one) for one in read_ones] == [
        ("Is tea hot?", "Yes.", [("d1", "Tea is served hot.", None)]),
        ("And milk?", "Cold.", [("ctx-1", "Milk is cold.", None)]),
    ]
    assert results[2:] == (Skipped(SkipReason.NOT_RAG),)
    assert [one.metadata for one in read_ones] == [{"thread_id": "t"}, {"turn": 2, "thread_id": "t"}]


@pytest.mark.parametrize("about", [{}, {"id": "conversation-7"}])
def test_a_conversation_that_has_grown_names_its_turns_as_before(about: Row) -> None:
    plain: list[JsonValue] = [{**one, "id": None} for one in TURN if isinstance(one, dict)]
    grown: list[JsonValue] = [*plain, human("And milk?"), ASKS, tool("Milk is cold."), model("Cold.")]
    (before,) = results_of({**about, "messages": plain})
    first, second = results_of({**about, "messages": grown})
    assert isinstance(before, Decoded)
    assert isinstance(first, Decoded)
    assert isinstance(second, Decoded)
    assert first.interaction == before.interaction
    assert second.interaction.interaction_id != first.interaction.interaction_id


def test_passages_of_the_state_are_those_of_the_last_turn() -> None:
    messages: JsonValue = [human("Hi."), model("Hello."), human("Is tea hot?"), model("Yes.")]
    first, last = results_of({"messages": messages, "context": [DOCUMENT]})
    assert first == Skipped(SkipReason.NOT_RAG)
    assert isinstance(last, Decoded)
    assert facts(last.interaction) == ("Is tea hot?", "Yes.", [("d1", "Tea is served hot.", None)])


def test_a_tool_that_found_nothing_leaves_an_exchange_without_passages() -> None:
    assert facts(read({"messages": [human("Q"), ASKS, tool(""), model("A")]}, "langgraph")) == ("Q", "A", [])


def test_a_conversation_in_which_nothing_is_looked_up_is_refused() -> None:
    rule = "messages: no tool's message among them, and no passages beside them; looks like a conversation"
    assert detail_of({"messages": [human("Q"), model("A")]}) == rule


def test_a_run_that_was_stopped_at_its_tools_has_no_answer() -> None:
    assert skipped({"messages": [human("Q"), ASKS, tool("Tea is hot.")]}) is SkipReason.NO_ANSWER


def test_a_conversation_may_lead_to_a_question_of_a_flat_row() -> None:
    row: JsonValue = {"messages": [human("Hi."), model("Hello."), human("Q")], "answer": "A", "contexts": ["C"]}
    assert facts(read(row, "flat")) == ("Q", "A", [("ctx-1", "C", None)])
