"""Messages of Anthropic's API with the search results and documents of their request."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.skip_reason import SkipReason
from tests.unit.formats.vendors import (
    ANSWER,
    FIRST,
    HOURS,
    PRICES,
    QUESTION,
    SECOND,
    adapter_of,
    exchange,
    passages,
    refusal,
    skipped,
)

QUOTED = {"type": "search_result_location", "cited_text": HOURS, "source": "kb/a", "search_result_index": 0}


def search_result(source: str, *texts: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {
        "type": "search_result",
        "source": source,
        "title": source,
        "content": content,
        "citations": {"enabled": True},
    }


def document(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, **more}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def request(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 10, "system": "Cite.", "messages": list(messages)}


def response(*content: dict[str, Any]) -> dict[str, Any]:
    facts = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn"}
    return {**facts, "content": list(content), "usage": {"input_tokens": 1}}


SAID = response({**text(FIRST), "citations": [QUOTED]}, {**text(f" {SECOND}"), "citations": None})
GIVEN = request(user(search_result("kb/a", HOURS), search_result("kb/b", PRICES[:10], PRICES[10:]), text(QUESTION)))
PASSAGES = [("kb/a", HOURS, None), ("kb/b", f"{PRICES[:10]}\n{PRICES[10:]}", None)]


@pytest.mark.parametrize(
    "row",
    [
        {"request": GIVEN, "response": SAID},
        {"input": GIVEN, "output": SAID},
        {**GIVEN, "response": SAID},
        {"params": GIVEN, "result": {"type": "succeeded", "message": SAID}},
        {"input": {"inputBodyJson": GIVEN}, "output": {"outputBodyJson": SAID}, "modelId": "anthropic.claude"},
    ],
    ids=["request", "input", "beside", "batch", "invocation-log"],
)
def test_search_results_of_the_request_are_the_passages(row: dict[str, Any]) -> None:
    found = exchange(row)
    assert (found.question, found.answer, passages(found)) == (QUESTION, ANSWER, PASSAGES)
    assert (found.interaction_id, found.generator_model) == ("msg_1", "claude-x")
    assert adapter_of(row) == "anthropic"


def test_documents_are_read_in_every_form_that_has_a_text() -> None:
    blocks = [
        document({"type": "text", "media_type": "text/plain", "data": HOURS}, title="a.md", context="of 2025"),
        document({"type": "content", "content": [text("One."), text("Two.")]}, title="b.md"),
        document({"type": "content", "content": PRICES}),
        document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, title="c.pdf"),
        document({"type": "file", "file_id": "file_1"}),
    ]
    found = exchange({"request": request(user(*blocks, text(QUESTION))), "response": SAID})
    assert passages(found) == [
        ("a.md", HOURS, None),
        ("b.md", "One.\nTwo.", None),
        ("ctx-3", PRICES, None),
        ("c.pdf", "", None),
        ("file_1", "", None),
    ]
    assert found.passages[0].metadata == {"context": "of 2025"}


def test_documents_that_no_text_is_logged_of_are_no_evidence() -> None:
    pdf = document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})
    row = {"request": request(user(pdf, text(QUESTION))), "response": SAID}
    assert skipped(row) is SkipReason.PASSAGES_WITHOUT_TEXT
    web = {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": "https://a.example"}]}
    searched = {"request": request(user(text(QUESTION))), "response": response(web, text(ANSWER))}
    assert skipped(searched) is SkipReason.PASSAGES_WITHOUT_TEXT


def test_search_results_that_a_tool_gave_are_passages_and_the_question_is_before_them() -> None:
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "search", "input": {}}]}
    given = user({"type": "tool_result", "tool_use_id": "t", "content": [search_result("kb/a", HOURS)]})
    found = exchange({"request": request(user(text(QUESTION)), used, given), "response": SAID})
    assert (found.question, passages(found)) == (QUESTION, PASSAGES[:1])
    plain = user({"type": "tool_result", "tool_use_id": "t", "content": [text(HOURS)]})
    found = exchange({"request": request(user(text(QUESTION)), used, plain), "response": SAID})
    assert (found.question, passages(found)) == (QUESTION, [("ctx-1", HOURS, None)])


def test_a_page_that_was_fetched_is_a_passage() -> None:
    page = document({"type": "text", "data": HOURS}, title="Hours")
    fetched = {"type": "web_fetch_tool_result", "content": {"type": "web_fetch_result", "url": "u", "content": page}}
    found = exchange({"request": request(user(text(QUESTION))), "response": response(fetched, text(ANSWER))})
    assert passages(found) == [("Hours", HOURS, None)]


def test_passages_beside_a_call_count_where_the_request_has_none() -> None:
    row = {"request": request(user(text(QUESTION))), "response": SAID, "contexts": [HOURS]}
    assert passages(exchange(row)) == [("ctx-1", HOURS, None)]


def test_a_response_alone_is_refused_because_it_quotes_only() -> None:
    assert refusal(SAID) == (
        "anthropic: request: missing; the passages are in it, and a response quotes the cited places only"
    )
    assert refusal({"request": request(user(text(QUESTION))), "response": SAID}) == (
        "anthropic: no search_result or document in the request, and no passages beside it"
    )


def test_thoughts_are_kept_apart_and_a_call_of_tools_is_no_answer() -> None:
    thought = {"type": "thinking", "thinking": "Look at the hours.", "signature": "s"}
    found = exchange({"request": GIVEN, "response": response(thought, text(ANSWER))})
    assert (found.answer, found.metadata["thoughts"]) == (ANSWER, "Look at the hours.")
    used = response({"type": "tool_use", "id": "t", "name": "search", "input": {}})
    assert skipped({"request": GIVEN, "response": used}) is SkipReason.NO_ANSWER
