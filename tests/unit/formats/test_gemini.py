"""Responses of Gemini with the chunks that they are grounded in, in both ways of writing their names."""

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

CHUNKS = [
    {"retrievedContext": {"uri": "gs://kb/hours.md", "title": "hours.md", "text": HOURS}},
    {"retrievedContext": {"title": "prices.md", "ragChunk": {"text": PRICES, "chunkId": "chunk-2"}}},
]
SNAKE_CHUNKS = [
    {"retrieved_context": {"uri": "gs://kb/hours.md", "title": "hours.md", "text": HOURS}},
    {"retrieved_context": {"title": "prices.md", "rag_chunk": {"text": PRICES, "chunk_id": "chunk-2"}}},
]
PASSAGES = [("gs://kb/hours.md", HOURS, None), ("chunk-2", PRICES, None)]
PARTS = [{"text": f"{FIRST} "}, {"text": SECOND}]


def camel(parts: list[dict[str, Any]], grounding: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    if grounding is not None:
        candidate["groundingMetadata"] = grounding
    return {"responseId": "r1", "modelVersion": "gemini-x", "candidates": [candidate], **more}


CAMEL = camel(PARTS, {"retrievalQueries": ["opening hours"], "groundingChunks": CHUNKS})
SNAKE = {
    "response_id": "r1",
    "model_version": "gemini-x",
    "create_time": "2025-11-30T10:00:00Z",
    "candidates": [
        {
            "content": {"parts": PARTS},
            "grounding_metadata": {"retrieval_queries": ["opening hours"], "grounding_chunks": SNAKE_CHUNKS},
        }
    ],
}


@pytest.mark.parametrize("row", [CAMEL, SNAKE], ids=["camel", "snake"])
def test_a_response_alone_has_its_chunks_and_no_question(row: dict[str, Any]) -> None:
    found = exchange(row)
    assert (found.question, found.answer, passages(found)) == ("opening hours", ANSWER, PASSAGES)
    assert (found.interaction_id, found.generator_model) == ("r1", "gemini-x")
    assert (found.metadata["question"], found.metadata["queries"]) == ("rewritten", ["opening hours"])
    assert adapter_of(row) == "gemini"


@pytest.mark.parametrize(
    "contents",
    [
        QUESTION,
        [QUESTION],
        {"parts": [{"text": QUESTION}]},
        [{"parts": [{"text": QUESTION}]}],
        [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hi."}]},
            {"role": "user", "parts": [{"text": QUESTION}]},
        ],
    ],
    ids=["text", "texts", "one", "without-role", "messages"],
)
def test_the_question_is_the_last_of_the_requests_contents(contents: Any) -> None:
    found = exchange({"request": {"contents": contents, "tools": [{}]}, "response": CAMEL})
    assert (found.question, passages(found)) == (QUESTION, PASSAGES)


def test_the_parts_of_a_stream_are_one_response() -> None:
    stream = [
        camel(PARTS[:1], None),
        camel(PARTS[1:], {"groundingChunks": CHUNKS[:1]}),
        camel([], {"groundingChunks": CHUNKS[1:]}),
    ]
    found = exchange({"contents": QUESTION, "response": stream})
    assert (found.question, found.answer, passages(found)) == (QUESTION, ANSWER, PASSAGES)


def test_pages_of_the_web_are_named_and_have_no_text() -> None:
    web = {"web": {"uri": "https://a.example", "title": "A", "domain": "a.example"}}
    assert skipped(camel(PARTS, {"groundingChunks": [web]})) is SkipReason.PASSAGES_WITHOUT_TEXT
    mixed = exchange(camel(PARTS, {"groundingChunks": [web, *CHUNKS]}))
    assert passages(mixed) == [("https://a.example", "", None), *PASSAGES]


def test_an_answer_that_is_not_grounded_is_refused_unless_passages_lie_beside_it() -> None:
    assert refusal(camel(PARTS, {})) == (
        "gemini: grounding_metadata.grounding_chunks: missing, and no passages beside it"
    )
    assert passages(exchange({"response": camel(PARTS, None), "contexts": [HOURS]})) == [("ctx-1", HOURS, None)]
    assert exchange(camel(PARTS, {"groundingChunks": []})).passages == ()


def test_thoughts_are_kept_apart_and_a_call_of_functions_is_no_answer() -> None:
    found = exchange(camel([{"text": "Look it up.", "thought": True}, *PARTS], {"groundingChunks": CHUNKS}))
    assert (found.answer, found.metadata["thoughts"]) == (ANSWER, "Look it up.")
    called = camel([{"functionCall": {"name": "search", "args": {}}}], {"groundingChunks": CHUNKS})
    assert skipped(called) is SkipReason.NO_ANSWER
