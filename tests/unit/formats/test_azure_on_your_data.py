"""Completions of Azure OpenAI On Your Data in the shapes of all versions of its API, whole and as streams."""

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
    said,
    skipped,
)

SHOWN = f"{FIRST[:-1]} [doc1]. {SECOND} [doc1][doc2]"
CITATIONS: list[dict[str, Any]] = [
    {"content": HOURS, "title": "Hours", "filepath": "hours.md", "url": None, "chunk_id": "0"},
    {
        "content": PRICES,
        "title": "Prices",
        "filepath": "prices.md",
        "url": "https://b.example",
        "chunk_id": "3",
        "original_search_score": 14.5,
        "rerank_score": 2.5,
    },
]
PASSAGES = [("hours.md", HOURS, None), ("prices.md", PRICES, 2.5)]
CONTEXT = {"citations": CITATIONS, "intent": '["opening hours", "prices"]'}
OLD_CONTENT = orjson.dumps(CONTEXT).decode()
TOOL = {"role": "tool", "content": OLD_CONTENT, "end_turn": False}
FACTS = {"id": "c-9", "model": "gpt-x", "created": 1_764_500_000, "object": "extensions.chat.completion"}


def whole(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {**FACTS, "choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}]}


def part(**delta: Any) -> dict[str, Any]:
    return {**FACTS, "object": "extensions.chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


NEW = whole({"role": "assistant", "content": SHOWN, "context": CONTEXT, "end_turn": True})
MIDDLE = whole({"role": "assistant", "content": SHOWN, "context": {"messages": [TOOL]}})
OLD = {**FACTS, "choices": [{"index": 0, "messages": [TOOL, {"role": "assistant", "content": SHOWN}]}]}
STREAM = [part(role="assistant", context=CONTEXT), part(content=SHOWN[:20]), part(content=SHOWN[20:]), part()]
JOINED = {**FACTS, "choices": [{"delta": {"role": "assistant", "content": SHOWN, "context": CONTEXT}}]}
OLD_STREAM = [
    {**FACTS, "choices": [{"messages": [{"delta": {"role": "tool", "content": OLD_CONTENT}}]}]},
    {**FACTS, "choices": [{"messages": [{"delta": {"role": "assistant"}}]}]},
    {**FACTS, "choices": [{"messages": [{"delta": {"content": SHOWN}}]}]},
]


@pytest.mark.parametrize("response", [NEW, MIDDLE, OLD, JOINED], ids=["new", "middle", "old", "joined"])
def test_a_completion_alone_is_read_in_the_shape_of_every_version(response: dict[str, Any]) -> None:
    found = exchange(response)
    assert (found.question, found.answer, said(found)) == ("opening hours", SHOWN, ANSWER)
    assert passages(found) == PASSAGES
    assert found.passages[1].metadata["chunk_id"] == "3"
    assert (found.interaction_id, found.generator_model) == ("c-9", "gpt-x")
    assert found.metadata["question"] == "rewritten"
    assert found.metadata["queries"] == ["opening hours", "prices"]
    assert adapter_of(response) == "azure_on_your_data"


@pytest.mark.parametrize("response", [NEW, OLD, STREAM, OLD_STREAM], ids=["new", "old", "stream", "old-stream"])
@pytest.mark.parametrize("names", [("request", "response"), ("input", "output"), ("request_body", "response_body")])
def test_the_question_is_the_users_last_and_not_the_intent(response: Any, names: tuple[str, str]) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "user", "content": QUESTION}]
    found = exchange({names[0]: {"messages": messages, "data_sources": []}, names[1]: response})
    assert (found.question, said(found), passages(found)) == (QUESTION, ANSWER, PASSAGES)
    assert "question" not in found.metadata


def test_a_mark_without_its_citation_is_what_was_said() -> None:
    row = whole({"role": "assistant", "content": f"{FIRST} [doc1][doc2]", "context": {"citations": CITATIONS[:1]}})
    assert said(exchange(row)) == f"{FIRST} [doc2]"


def test_without_citations_what_was_retrieved_and_not_filtered_out_counts() -> None:
    retrieved = [CITATIONS[0], {**CITATIONS[1], "filter_reason": "score"}]
    row = whole({"role": "assistant", "content": ANSWER, "context": {"all_retrieved_documents": retrieved}})
    assert passages(exchange(row)) == PASSAGES[:1]


def test_an_answer_that_rests_on_nothing_has_no_passages_and_no_answer_is_said_to_be_none() -> None:
    assert exchange(whole({"role": "assistant", "content": ANSWER, "context": {"citations": []}})).passages == ()
    assert skipped(whole({"role": "assistant", "content": None, "context": CONTEXT})) is SkipReason.NO_ANSWER
