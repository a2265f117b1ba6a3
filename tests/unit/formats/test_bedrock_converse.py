"""Responses of Bedrock's Converse with the search results and documents of their request."""

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

RESULT = {
    "searchResult": {"source": "kb/a", "title": "Hours", "content": [{"text": HOURS}], "citations": {"enabled": True}}
}
DOCUMENT = {"document": {"name": "prices", "format": "txt", "source": {"text": PRICES}}}
PDF = {"document": {"name": "scan", "format": "pdf", "source": {"bytes": "JVBERi0="}}}
CITED = {
    "citationsContent": {
        "content": [{"text": FIRST}],
        "citations": [{"title": "Hours", "sourceContent": [{"text": HOURS}]}],
    }
}


def request(*content: dict[str, Any]) -> dict[str, Any]:
    return {"modelId": "model-x", "messages": [{"role": "user", "content": [*content, {"text": QUESTION}]}]}


def response(*content: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(content)}
    facts = {"stopReason": "end_turn", "usage": {"inputTokens": 1}, "ResponseMetadata": {"RequestId": "req-1"}}
    return {"output": {"message": message}, **facts}


SAID = response(CITED, {"text": f" {SECOND}"})
PASSAGES = [("kb/a", HOURS, None), ("prices", PRICES, None), ("scan", "", None)]


@pytest.mark.parametrize(
    "row",
    [
        {"request": request(RESULT, DOCUMENT, PDF), "response": SAID},
        {**request(RESULT, DOCUMENT, PDF), "response": SAID},
        {"input": {"inputBodyJson": request(RESULT, DOCUMENT, PDF)}, "output": {"outputBodyJson": SAID}},
    ],
    ids=["request", "beside", "invocation-log"],
)
def test_blocks_of_the_request_are_the_passages(row: dict[str, Any]) -> None:
    found = exchange(row)
    assert (found.question, found.answer, passages(found)) == (QUESTION, ANSWER, PASSAGES)
    assert (found.interaction_id, found.generator_model) == ("req-1", "model-x")
    assert adapter_of(row) == "bedrock_converse"


def test_search_results_that_a_tool_gave_are_passages() -> None:
    asked = request()
    asked["messages"].append(
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "s", "input": {}}}]}
    )
    asked["messages"].append({"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [RESULT]}}]})
    found = exchange({"request": asked, "response": SAID})
    assert (found.question, passages(found)) == (QUESTION, PASSAGES[:1])


def test_thoughts_are_kept_apart() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Look it up."}}}
    found = exchange({"request": request(RESULT), "response": response(thought, {"text": ANSWER})})
    assert (found.answer, found.metadata["thoughts"]) == (ANSWER, "Look it up.")


def test_what_cannot_be_judged_has_a_named_outcome() -> None:
    assert refusal(SAID).startswith("bedrock_converse: request: missing")
    assert refusal({"request": request(), "response": SAID}).startswith("bedrock_converse: no searchResult or document")
    assert skipped({"request": request(PDF), "response": SAID}) is SkipReason.PASSAGES_WITHOUT_TEXT
    called = response({"toolUse": {"toolUseId": "t", "name": "s", "input": {}}})
    assert skipped({"request": request(RESULT), "response": called}) is SkipReason.NO_ANSWER
