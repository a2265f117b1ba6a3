"""Cohere's chat in both versions of its API."""

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
    skipped,
)


def source(number: int, text: str) -> dict[str, Any]:
    return {"type": "document", "id": f"doc:{number}", "document": {"id": f"doc:{number}", "text": text, "title": "T"}}


def citation(said: str, *sources: dict[str, Any]) -> dict[str, Any]:
    return {"start": 0, "end": len(said), "text": said, "type": "TEXT_CONTENT", "sources": list(sources)}


def second(*citations: dict[str, Any], content: Any = None) -> dict[str, Any]:
    content = [{"type": "text", "text": ANSWER}] if content is None else content
    message = {"role": "assistant", "content": content, "citations": list(citations)}
    return {"id": "c1", "finish_reason": "COMPLETE", "message": message, "usage": {"tokens": {"input_tokens": 1.0}}}


CITED = second(citation(FIRST, source(0, HOURS)), citation(SECOND, source(1, PRICES), source(0, HOURS)))
ASKED = [{"role": "user", "content": QUESTION}]
FIRST_VERSION = {
    "response_id": "r1",
    "generation_id": "g1",
    "text": ANSWER,
    "chat_history": [
        {"role": "USER", "message": "Hi"},
        {"role": "USER", "message": QUESTION},
        {"role": "CHATBOT", "message": ANSWER},
    ],
    "finish_reason": "COMPLETE",
    "citations": [{"start": 0, "end": 5, "text": "It op", "document_ids": ["a"]}],
    "documents": [{"id": "a", "snippet": HOURS, "title": "Hours"}, {"id": "b", "snippet": PRICES}],
    "search_queries": [{"text": "opening hours", "generation_id": "g0"}],
}


def test_a_response_of_version_2_alone_has_what_it_cites_and_says_so() -> None:
    found = exchange(CITED)
    assert (found.question, found.answer, found.interaction_id) == ("", ANSWER, "c1")
    assert passages(found) == [("doc:0", HOURS, None), ("doc:1", PRICES, None)]
    assert (found.metadata["evidence"], found.metadata["question"]) == ("cited_only", "absent")
    assert found.marks == ()
    assert adapter_of(CITED) == "cohere"


@pytest.mark.parametrize(
    ("document", "passage"),
    [
        (HOURS, ("ctx-1", HOURS, None)),
        ({"id": "a", "data": {"title": "T", "snippet": HOURS}}, ("a", HOURS, None)),
        ({"id": "a", "data": HOURS}, ("a", HOURS, None)),
        ({"data": {"opens": "nine", "closes": "six"}}, ("ctx-1", "opens: nine\ncloses: six", None)),
        ({"id": "a", "data": orjson.dumps({"text": HOURS}).decode()}, ("a", HOURS, None)),
        ({"id": "a", "text": HOURS}, ("a", HOURS, None)),
    ],
    ids=["text", "fields", "data", "own-fields", "json", "flat"],
)
def test_documents_of_the_request_are_all_that_the_model_read(document: Any, passage: tuple[str, str, None]) -> None:
    request = {"model": "command-x", "messages": ASKED, "documents": [document]}
    found = exchange({"request": request, "response": CITED})
    assert (found.question, found.generator_model, passages(found)) == (QUESTION, "command-x", [passage])
    assert "evidence" not in found.metadata


def test_documents_that_a_tool_gave_are_read_too() -> None:
    content = [{"type": "document", "document": {"id": "t:0", "data": orjson.dumps({"text": HOURS}).decode()}}]
    request = {"messages": [*ASKED, {"role": "tool", "tool_call_id": "t", "content": content}]}
    assert passages(exchange({"request": request, "response": CITED})) == [("t:0", HOURS, None)]


def test_version_1_has_question_and_documents_in_its_response() -> None:
    found = exchange(FIRST_VERSION)
    assert (found.question, found.answer, found.interaction_id) == (QUESTION, ANSWER, "r1")
    assert passages(found) == [("a", HOURS, None), ("b", PRICES, None)]
    assert found.metadata["queries"] == ["opening hours"]
    bare = {"text": ANSWER, "generation_id": "g1"}
    asked = {"message": QUESTION, "documents": [{"id": "a", "text": HOURS}], "model": "command-r"}
    found = exchange({"request": asked, "response": bare})
    assert (found.question, passages(found), found.generator_model) == (QUESTION, [("a", HOURS, None)], "command-r")


def test_thoughts_are_kept_apart() -> None:
    content = [{"type": "thinking", "thinking": "Look it up."}, {"type": "text", "text": ANSWER}]
    found = exchange(second(citation(FIRST, source(0, HOURS)), content=content))
    assert (found.answer, found.metadata["thoughts"]) == (ANSWER, "Look it up.")


def test_an_answer_that_cites_nothing_is_refused_and_none_is_no_answer() -> None:
    assert refusal(second()) == "cohere: no documents in the request, and the response cites none"
    assert skipped(second(content=[])) is SkipReason.NO_ANSWER
