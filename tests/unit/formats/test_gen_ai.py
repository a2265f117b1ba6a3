from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.conventions import step_of_record
from schemas.traces.merging import merged_steps
from schemas.traces.span import LogRecord
from schemas.traces.step import Step, StepKind
from tests.unit.formats.spans import found, step, text

INPUT: JsonValue = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Is it open?"}], "name": None},
]
OUTPUT: JsonValue = [
    {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "So…"}, {"type": "text", "content": "Yes."}],
        "finish_reason": "stop",
    }
]


def record(name: str, body: JsonValue, attributes: JsonObject | None = None, logged_ns: int = 1) -> Step | None:
    known = attributes or {}
    return step_of_record(
        LogRecord("c" * 32, "a" * 16, name, logged_ns, body, known, {"service.name": "desk"}, "scope")
    )


@pytest.mark.parametrize("as_json", [True, False], ids=["string", "structured"])
def test_a_chat_span_says_what_was_asked_and_answered(as_json: bool) -> None:  # noqa: FBT001 - a parameter of the test
    chat = step(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
            "gen_ai.conversation.id": "s-1",
            "gen_ai.input.messages": text(INPUT) if as_json else INPUT,
            "gen_ai.output.messages": text(OUTPUT) if as_json else OUTPUT,
        }
    )
    assert (chat.kind, chat.prompt, chat.answer, chat.thoughts) == (StepKind.LLM, "Is it open?", "Yes.", "So…")
    assert (chat.model, chat.app, chat.metadata) == ("gpt-4o-mini-2024-07-18", "desk", {"session": "s-1"})


def test_documents_are_named_only_and_the_query_is_a_question() -> None:
    retrieval = step(
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.query.text": "Is it open?",
            "gen_ai.retrieval.documents": text([{"id": "d-1", "score": 0.7}, {"id": "d-2", "score": None}]),
        }
    )
    assert (retrieval.kind, retrieval.question) == (StepKind.RETRIEVER, "Is it open?")
    assert found(retrieval) == [("d-1", None, 0.7), ("d-2", None, None)]


@pytest.mark.parametrize(
    "documents", [["Open until 6.", "Closed on Sundays."], text(["Open until 6.", "Closed on Sundays."])]
)
def test_documents_that_are_texts_are_read_as_such(documents: JsonValue) -> None:
    assert found(step({"gen_ai.retrieval.documents": documents})) == [
        (None, "Open until 6.", None),
        (None, "Closed on Sundays.", None),
    ]


def test_a_retriever_that_found_nothing_found_nothing() -> None:
    assert step({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": "[]"}).documents == ()
    assert step({"gen_ai.operation.name": "retrieval"}).documents is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("context", "Open until 6.\n\nClosed on Sundays."),
        ("context_str", "Open until 6.\n\nClosed on Sundays."),
        ("documents", text([{"page_content": "Open until 6."}, {"page_content": "Closed on Sundays."}])),
        ("docs", ["Open until 6.", "Closed on Sundays."]),
    ],
)
def test_the_context_is_the_variable_of_the_prompt_that_holds_it(name: str, value: JsonValue) -> None:
    chat = step(
        {"gen_ai.operation.name": "chat", "gen_ai.prompt.variable.input": "Q", f"gen_ai.prompt.variable.{name}": value}
    )
    assert chat.context == "Open until 6.\n\nClosed on Sundays."


@pytest.mark.parametrize("operation", ["invoke_workflow", "invoke_agent"])
@pytest.mark.parametrize("asked", ["Is it open?", '{"input": "Is it open?"}'])
def test_a_workflow_is_a_chain_whose_inputs_may_be_json_in_a_message(operation: str, asked: str) -> None:
    messages = text([{"role": "user", "parts": [{"type": "text", "content": asked}]}])
    workflow = step(
        {"gen_ai.operation.name": operation, "gen_ai.input.messages": messages, "gen_ai.output.messages": text(OUTPUT)}
    )
    assert (workflow.kind, workflow.question, workflow.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")
    assert workflow.prompt is None


@pytest.mark.parametrize("prefixes", [("gen_ai.prompt", "gen_ai.completion"), ("llm.prompts", "llm.completions")])
def test_messages_may_be_flattened(prefixes: tuple[str, str]) -> None:
    asked, answered = prefixes
    chat = step(
        {
            "llm.request.type": "chat",
            f"{asked}.10.role": "user",
            f"{asked}.10.content": text([{"type": "text", "text": "Is it open?"}]),
            f"{asked}.9.role": "user",
            f"{asked}.9.content": "Hello",
            f"{answered}.0.content": "Yes.",
            f"{answered}.0.finish_reason": "stop",
        }
    )
    assert (chat.kind, chat.prompt, chat.answer) == (StepKind.LLM, "Is it open?", "Yes.")


def test_a_flattened_call_of_a_tool_is_no_answer() -> None:
    chat = step({"gen_ai.completion.0.content": "Let me see.", "gen_ai.completion.0.tool_calls.0.name": "find"})
    assert (chat.kind, chat.answer) == (StepKind.LLM, None)


def test_scores_of_a_reranker_are_no_answer() -> None:
    ranked = step({"llm.request.type": "rerank", "gen_ai.completion.0.content": "Doc 0, Score: 0.9"})
    assert (ranked.kind, ranked.answer, ranked.documents) == (StepKind.RERANKER, None, None)


def test_of_several_choices_the_first_is_the_answer() -> None:
    choices: list[JsonValue] = [
        {"role": "assistant", "parts": [{"type": "text", "content": word}]} for word in ("A", "B")
    ]
    assert step({"gen_ai.request.choice.count": 2, "gen_ai.output.messages": choices}).answer == "A"
    assert step({"gen_ai.output.messages": choices}).answer == "B"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (("gen_ai.content.prompt", {"gen_ai.prompt": text([{"role": "user", "content": "Is it open?"}])}),
         ("gen_ai.content.completion", {"gen_ai.completion": text([{"role": "assistant", "content": "Yes."}])})),
        (("gen_ai.user.message", {"gen_ai.event.content": text({"role": "user", "content": "Is it open?"})}),
         ("gen_ai.choice", {"gen_ai.event.content": text({"message": {"content": "Yes."}, "index": 0})})),
        (("gen_ai.user.message", {"content": text([{"text": "Is it open?"}])}),
         ("gen_ai.choice", {"finish_reason": "end_turn", "message": text([{"text": "Yes."}])})),
        (("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": text(INPUT)}),
         ("gen_ai.client.inference.operation.details", {"gen_ai.output.messages": text(OUTPUT)})),
    ],
)  # fmt: skip
def test_what_was_said_may_be_in_events_of_the_span(
    asked: tuple[str, JsonObject], answered: tuple[str, JsonObject]
) -> None:
    chat = step({"gen_ai.system": "openai", "gen_ai.operation.name": "chat"}, events=(asked, answered))
    assert (chat.kind, chat.prompt, chat.answer) == (StepKind.LLM, "Is it open?", "Yes.")


def test_a_tool_that_is_a_store_retrieves() -> None:
    tool: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.arguments": {"query": "Is it open?"},
        "gen_ai.tool.call.result": "Open until 6.",
    }
    assert step(tool).kind is StepKind.OTHER
    stored = step({**tool, "gen_ai.tool.type": "datastore"})
    assert (stored.kind, stored.question) == (StepKind.RETRIEVER, "Is it open?")
    assert found(stored) == [(None, "Open until 6.", None)]
    listed = step({**tool, "gen_ai.tool.call.result": text([{"id": "d-1", "text": "Open until 6."}])})
    assert found(listed) == [("d-1", "Open until 6.", None)]


def test_embeddings_and_plain_tools_only_connect() -> None:
    assert step({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "m"}).kind is StepKind.OTHER
    assert step({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "m"}).model is None


def test_events_of_the_logs_are_reports_of_their_span() -> None:
    reports = [
        record("gen_ai.user.message", {"content": "Hello"}, logged_ns=1),
        record("gen_ai.user.message", {"content": "Is it open?"}, logged_ns=2),
        record(
            "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}
        ),
        record("gen_ai.choice", {"index": 1, "message": {"content": "No."}}, logged_ns=9),
        step({"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.response.model": "m"}),
    ]
    (chat,) = merged_steps([report for report in reports if report is not None])
    assert (chat.kind, chat.prompt, chat.answer, chat.model) == (StepKind.LLM, "Is it open?", "Yes.", "m")
    assert (chat.app, chat.parent, chat.has_ended) == ("desk", "b" * 16, True)


def test_one_event_may_hold_all_of_a_call() -> None:
    chat = record(
        "gen_ai.client.inference.operation.details",
        None,
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": INPUT, "gen_ai.output.messages": OUTPUT},
    )
    assert chat is not None
    assert (chat.kind, chat.prompt, chat.answer, chat.thoughts) == (StepKind.LLM, "Is it open?", "Yes.", "So…")
    assert (chat.is_root, chat.has_ended) == (None, False)


@pytest.mark.parametrize("name", ["gen_ai.system.message", "gen_ai.assistant.message", "exception", ""])
def test_other_records_say_nothing_of_a_step(name: str) -> None:
    assert record(name, {"content": "Be brief."}) is None


def test_a_record_without_a_span_says_nothing() -> None:
    known = LogRecord("c" * 32, None, "gen_ai.user.message", 1, {"content": "Is it open?"}, {}, {}, "scope")
    assert step_of_record(known) is None
