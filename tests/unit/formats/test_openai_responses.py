"""Responses of OpenAI with file search, as the SDK dumps them, with and without their request."""

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


def result(file_id: str, text: str, score: float) -> dict[str, Any]:
    return {"file_id": file_id, "filename": f"{file_id}.md", "text": text, "score": score, "attributes": {"page": 2}}


def search(*results: dict[str, Any]) -> dict[str, Any]:
    return {"id": "fs_1", "type": "file_search_call", "queries": ["opening hours"], "results": list(results) or None}


def message(text: str, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": [part], **more}


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_7",
        "object": "response",
        "created_at": 1_764_500_000,
        "model": "gpt-x",
        "output": output,
        **more,
    }


FOUND = search(result("file-a", HOURS, 0.9), result("file-b", PRICES, 0.4))
PASSAGES = [("file-a", HOURS, 0.9), ("file-b", PRICES, 0.4)]
WHOLE = response(FOUND, message(ANSWER), status="completed", metadata={"user": "u1"})
REQUEST = {"model": "gpt-x", "input": QUESTION, "tools": [{"type": "file_search"}]}


def test_in_a_response_alone_what_was_searched_for_stands_for_the_question_and_says_so() -> None:
    found = exchange(WHOLE)
    assert (found.question, found.answer, found.interaction_id) == ("opening hours", ANSWER, "resp_7")
    assert (found.generator_model, found.occurred_at is not None) == ("gpt-x", True)
    assert passages(found) == PASSAGES
    assert found.passages[0].metadata == {"page": 2, "filename": "file-a.md"}
    assert found.metadata["question"] == "rewritten"
    assert found.metadata["queries"] == ["opening hours"]
    assert found.metadata["user"] == "u1"
    assert adapter_of(WHOLE) == "openai_responses"


ITEMS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Good day."}]},
    {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
]


@pytest.mark.parametrize(
    "row",
    [
        {"request": REQUEST, "response": WHOLE},
        {"request": {**REQUEST, "input": ITEMS}, "response": WHOLE},
        {"input": REQUEST, "output": WHOLE},
        {"input": QUESTION, "response": WHOLE},
        {"question": QUESTION, "response": WHOLE},
        {"request": {"method": "POST", "body": REQUEST}, "response": {"status": 200, "body": WHOLE}},
        {"request_body": orjson.dumps(REQUEST).decode(), "response_body": orjson.dumps(WHOLE).decode()},
        {"custom_id": "c1", "request": {"body": REQUEST}, "response": {"status_code": 200, "body": WHOLE}},
        {**WHOLE, "input": QUESTION},
        {"type": "response.completed", "request": REQUEST, "response": WHOLE},
    ],
    ids=range(10),
)
def test_the_question_is_that_of_the_request_however_the_row_has_it(row: dict[str, Any]) -> None:
    found = exchange(row)
    assert (found.question, found.answer, passages(found)) == (QUESTION, ANSWER, PASSAGES)
    assert "question" not in found.metadata


def test_the_rows_own_id_app_and_time_go_first() -> None:
    found = exchange({"id": "row-1", "app": "shop", "timestamp": 1_764_600_000, "response": WHOLE, "tenant": "t"})
    assert (found.interaction_id, found.app, found.metadata["tenant"]) == ("row-1", "shop", "t")
    assert found.occurred_at is not None
    assert found.occurred_at.timestamp() == 1_764_600_000


def test_several_searches_are_united_and_what_comes_twice_counts_once() -> None:
    twice = response(FOUND, search(result("file-b", PRICES, 0.4), result("file-b", "More.", 0.3)), message(ANSWER))
    assert passages(exchange(twice)) == [*PASSAGES, ("file-b", "More.", 0.3)]


def test_texts_are_joined_and_commentary_is_no_answer() -> None:
    thinking = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look at the hours."}]}
    row = response(thinking, message("Let me look.", phase="commentary"), FOUND, message(FIRST), message(" " + SECOND))
    found = exchange(row)
    assert found.answer == ANSWER
    assert found.metadata["thoughts"] == "Look at the hours."


def test_marks_are_cut_where_annotations_say_so() -> None:
    cited = {"type": "file_citation", "file_id": "file-a", "filename": "a.md", "index": len(FIRST)}
    text = f"{FIRST} 【4:0†a.md】 {SECOND} 【4:1†b.md】【4:2†source】"
    found = exchange(response(FOUND, message("Well. "), message(text, cited)))
    assert found.answer == f"Well. {text}"
    assert said(found) == f"Well. {ANSWER}"
    # Without an annotation it is what was said.
    assert exchange(response(FOUND, message(text))).marks == ()


def test_a_link_is_a_mark_where_the_annotated_span_holds_its_address() -> None:
    link = "([a](https://a.example/x))"
    text = f"{FIRST} {link} {SECOND}"
    start = len(FIRST) + 1
    cited = {"type": "url_citation", "url": "https://a.example/x", "start_index": start, "end_index": start + len(link)}
    assert said(exchange(response(FOUND, message(text, cited)))) == ANSWER
    assert said(exchange(response(FOUND, message(text, {**cited, "end_index": start + len(link) - 1})))) == ANSWER
    about = {**cited, "start_index": 0, "end_index": len(FIRST)}
    for wrong in (about, {**cited, "start_index": -3}, {**cited, "end_index": 10**9}, {**cited, "start_index": "0"}):
        assert exchange(response(FOUND, message(text, wrong))).marks == ()


def test_results_that_were_not_asked_for_are_named_and_none_found_is_no_passages() -> None:
    assert refusal(response(search(), message(ANSWER))) == (
        "openai_responses: no file_search_call with results; "
        "send include=['file_search_call.results'], or passages beside it"
    )
    none_found = {**FOUND, "results": []}
    assert exchange(response(none_found, message(ANSWER))).passages == ()


def test_passages_beside_a_response_and_what_other_tools_gave_are_evidence_too() -> None:
    beside = {"contexts": [HOURS, PRICES], "response": response(message(ANSWER))}
    assert passages(exchange(beside)) == [("ctx-1", HOURS, None), ("ctx-2", PRICES, None)]
    output = orjson.dumps([{"id": "kb-1", "text": HOURS}]).decode()
    items = [*ITEMS, {"type": "function_call_output", "call_id": "c", "output": output}]
    by_tool = {"request": {"input": items}, "response": response(message(ANSWER))}
    assert passages(exchange(by_tool)) == [("kb-1", HOURS, None)]


def test_a_response_that_says_nothing_has_no_answer() -> None:
    assert skipped(response(FOUND)) is SkipReason.NO_ANSWER
    assert skipped(response(FOUND, message(" "))) is SkipReason.NO_ANSWER
