"""Chat completions of OpenAI's form, whose passages lie in many places."""

from __future__ import annotations

from typing import Any

import orjson
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
    said,
    skipped,
)

ASKED = [{"role": "system", "content": "Be short."}, {"role": "user", "content": QUESTION}]


def completion(content: str | None, message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    facts = {"id": "c-1", "object": "chat.completion", "created": 1_764_500_000, "model": "m-1"}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": content, **(message or {})},
    }
    return {**facts, "choices": [choice], **more}


@pytest.mark.parametrize("name", ["contexts", "passages", "retrieved_contexts", "documents"])
def test_passages_beside_a_completion_are_its_evidence(name: str) -> None:
    row = {"messages": ASKED, "response": completion(ANSWER), name: [{"id": "a", "text": HOURS}, {"text": PRICES}]}
    found = exchange(row)
    assert (found.question, found.answer) == (QUESTION, ANSWER)
    assert passages(found) == [("a", HOURS, None), ("ctx-2", PRICES, None)]
    assert adapter_of(row) == "openai_chat"


def test_documents_of_the_request_are_what_the_model_read() -> None:
    documents = [{"title": "Hours", "text": HOURS}, {"title": "Prices", "text": PRICES}]
    found = exchange({"request": {"messages": ASKED, "documents": documents}, "response": completion(ANSWER)})
    assert [one.text for one in found.passages] == [HOURS, PRICES]


def test_what_tools_gave_for_the_last_question_is_evidence() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "type": "function"}]}
    old = [{"role": "user", "content": "Hello"}, call, {"role": "tool", "content": "Old."}]
    documents = orjson.dumps({"documents": [{"id": "kb", "content": HOURS, "score": 0.5}]}).decode()
    now = [*ASKED, call, {"role": "tool", "content": documents}, {"role": "tool", "content": PRICES}]
    found = exchange({"request": {"messages": [*old, *now]}, "response": completion(ANSWER)})
    assert passages(found) == [("kb", HOURS, 0.5), ("ctx-2", PRICES, None)]


def test_results_of_a_search_are_snippets_and_its_numbers_are_marks() -> None:
    results = [
        {"title": "A", "url": "https://a.example", "snippet": HOURS},
        {"url": "https://b.example", "snippet": PRICES},
    ]
    found = exchange(
        completion(f"{FIRST}[1] {SECOND}[1][2][3]", search_results=results, citations=["https://a.example"])
    )
    assert passages(found) == [("https://a.example", HOURS, None), ("https://b.example", PRICES, None)]
    assert said(found) == f"{ANSWER}[3]"
    assert found.metadata["evidence"] == "snippets"


def test_cited_pages_with_their_text_are_partial_evidence_and_without_it_are_none() -> None:
    link = "[a](https://a.example)"
    page = {
        "url": "https://a.example",
        "title": "A",
        "start_index": len(FIRST) + 1,
        "end_index": len(FIRST) + 1 + len(link),
    }
    cited = {"type": "url_citation", "url_citation": {**page, "content": HOURS}}
    found = exchange(completion(f"{FIRST} {link} {SECOND}", {"annotations": [cited]}))
    assert (passages(found), said(found)) == ([("https://a.example", HOURS, None)], ANSWER)
    assert found.metadata["evidence"] == "cited_only"
    bare = {"type": "url_citation", "url_citation": page}
    assert skipped(completion(ANSWER, {"annotations": [bare]})) is SkipReason.PASSAGES_WITHOUT_TEXT
    assert skipped(completion(ANSWER, citations=["https://a.example"])) is SkipReason.PASSAGES_WITHOUT_TEXT


def test_a_completion_without_passages_is_refused_by_name_and_a_call_of_tools_is_no_answer() -> None:
    assert refusal({"messages": ASKED, "response": completion(ANSWER)}) == (
        "openai_chat: no passages in request or response; log what was retrieved beside them, as contexts"
    )
    assert skipped(completion(None, {"tool_calls": [{"id": "t"}]})) is SkipReason.NO_ANSWER


def test_a_number_in_brackets_is_what_was_said_where_there_are_no_sources() -> None:
    assert exchange({"contexts": [HOURS], "response": completion(f"{FIRST}[1]")}).marks == ()


def test_what_the_model_thought_is_kept_apart() -> None:
    row = {"contexts": [HOURS], "response": completion(ANSWER, {"reasoning_content": "Look it up."})}
    found = exchange(row)
    assert (found.answer, found.metadata["thoughts"]) == (ANSWER, "Look it up.")
