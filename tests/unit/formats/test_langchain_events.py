from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.langchain_events import LangChainEventsAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.assembly import assemble
from schemas.traces.piece import Piece, TraceKey, uppermost_keys
from schemas.traces.step import Document, Step, StepKind

# Version 7: the first half of the id is the time, 1,772,360,100,000 ms after the epoch.
ROOT = "019ca8e4-e8a0-7000-8000-000000000001"
BEGUN_NS = 1_772_360_100_000_000_000
DOCUMENT: JsonObject = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "document", "Document"],
    "kwargs": {"id": "tea-1", "page_content": "Tea is brewed at 90 °C.", "metadata": {"score": 0.9}},
}
READ = (Document(id="tea-1", text="Tea is brewed at 90 °C.", score=0.9, metadata={"score": 0.9}),)


def told(event: str, run_id: str = ROOT, parent: str | None = None, data: JsonValue = None) -> JsonObject:
    return {"event": event, "run_id": run_id, "parent_run_id": parent, "name": None, "data": data}


def streamed(event: str, run_id: str = ROOT, *parents: str, **data: JsonValue) -> JsonObject:
    row: JsonObject = {"event": event, "run_id": run_id, "name": "x", "tags": [], "metadata": {}}
    return {**row, "data": data, "parent_ids": list(parents)}


def piece(row: JsonObject) -> Piece:
    assert adapter_for(row, ()).name == "langchain_events"
    (found,) = LangChainEventsAdapter().read(row)
    assert isinstance(found, Piece)
    return found


def step(row: JsonObject) -> Step:
    (one,) = piece(row).steps
    return one


def test_callbacks_of_a_chain_are_one_exchange_though_none_names_the_trace() -> None:
    rows = [
        told("chain_start", data="How hot is tea?"),
        told("chain_start", "r2", ROOT, {"question": "How hot is tea?"}),
        told("retriever_start", "r3", "r2", "hot tea"),
        told("retriever_end", "r3", "r2", [DOCUMENT]),
        told("chain_end", "r2", ROOT, {"context": [DOCUMENT]}),
        told("chat_model_start", "r4", ROOT, [[{"type": "human", "content": "How hot is tea?"}]]),
        told("llm_end", "r4", ROOT, {"generations": [[{"text": "Hot.", "generation_info": None}]]}),
        told("chain_end", data="Hot."),
    ]
    for order in (rows, rows[::-1], [*rows, *rows]):
        pieces = [piece(row) for row in order]
        assert set(uppermost_keys(pieces).values()) == {TraceKey("langchain", ROOT)}
        (exchange,) = assemble([one for held in pieces for one in held.steps], ROOT).exchanges
        assert (exchange["question"], exchange["answer"]) == ("How hot is tea?", "Hot.")
        assert exchange["passages"] == [
            {"id": "tea-1", "text": "Tea is brewed at 90 °C.", "score": 0.9, "metadata": {"score": 0.9}}
        ]


def test_a_callback_lies_within_the_run_above_and_an_event_of_a_stream_in_the_trace() -> None:
    inner = piece(told("retriever_end", "r3", "r2", [DOCUMENT]))
    assert (inner.trace, inner.within, inner.ends) == (TraceKey("langchain", "r3"), "r2", False)
    inner = piece(streamed("on_retriever_end", "r3", ROOT, "r2", output=[DOCUMENT]))
    assert (inner.trace, inner.within, inner.steps[0].parent) == (TraceKey("langchain", ROOT), None, "r2")


@pytest.mark.parametrize(
    "row", [told("chain_end", data={"answer": "Hot."}), streamed("on_chain_end", output={"answer": "Hot."})]
)
def test_the_end_of_the_run_without_one_above_ends_the_trace(row: JsonObject) -> None:
    held = piece(row)
    (root,) = held.steps
    assert held.ends
    assert (root.is_root, root.kind, root.answer, root.begun_ns) == (True, StepKind.CHAIN, "Hot.", BEGUN_NS)


def test_a_stream_tells_what_a_run_was_given_and_gave() -> None:
    found = step(streamed("on_retriever_end", "r3", ROOT, output={"documents": [DOCUMENT]}, input={"query": "hot?"}))
    assert (found.question, found.documents) == ("hot?", READ)
    assert step(streamed("on_chain_start", input={"question": "hot?"})).question == "hot?"
    assert step(streamed("on_chain_start", "r2", ROOT)).question is None


def test_handlers_may_keep_what_they_are_told_under_its_own_name() -> None:
    row: JsonObject = {"event": "on_retriever_end", "run_id": "r3", "parent_run_id": ROOT, "documents": [DOCUMENT]}
    assert step(row).documents == READ
    asked = step({"event": "on_retriever_start", "run_id": "r3", "parent_run_id": ROOT, "query": "hot?", "time": 1e9})
    assert (asked.question, asked.begun_ns, asked.order) == ("hot?", 10**18, (0, 10**18))


def test_a_model_is_named_and_tags_are_kept() -> None:
    row = streamed("on_chat_model_end") | {"metadata": {"ls_model_name": "tea-1b", "user": "u-1"}, "tags": ["prod"]}
    said = step(row)
    assert (said.kind, said.model, said.metadata) == (StepKind.LLM, "tea-1b", {"user": "u-1", "tags": ["prod"]})


def test_a_run_that_failed_is_over_and_gives_nothing() -> None:
    failed = step(told("chain_error", data="ValueError()"))
    assert (failed.has_failed, failed.has_ended, failed.answer) == (True, True, None)


@pytest.mark.parametrize("event", ["on_chain_stream", "on_chat_model_stream", "llm_new_token", "on_custom_event"])
def test_parts_of_a_stream_are_skipped_as_such(event: str) -> None:
    assert tuple(LangChainEventsAdapter().read(streamed(event, chunk="H"))) == (SkipReason.STREAMED_PART,)


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"event": "on_chain_end", "run_id": "r", "data": {}}, "langchain.parent_run_id: missing, and no parent_ids"),
        (told("chain_end", run_id=""), "langchain.run_id: missing"),
    ],
)
def test_an_event_that_cannot_be_placed_is_refused_by_name(row: JsonObject, detail: str) -> None:
    with pytest.raises(UnusablePayload) as refused:
        tuple(LangChainEventsAdapter().read(row))
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    "row", [{"event": "click", "run_id": "r"}, {"event": "chain_end", "answer": "A"}, {"event": 7, "run_id": "r"}]
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not LangChainEventsAdapter().matches(row, ())
