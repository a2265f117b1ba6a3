from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.opik import OpikAdapter
from schemas.payload import JsonObject
from schemas.traces.assembly import assemble
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Document, Step, StepKind

TRACE = "019ca8e4-e8a0-7000-8000-000000000001"
DOCUMENTS: JsonValue = [{"id": "tea-1", "text": "Tea is brewed at 90 °C.", "score": 0.9}]
READ = (Document(id="tea-1", text="Tea is brewed at 90 °C.", score=0.9),)


def trace(**more: JsonValue) -> JsonObject:
    return {
        "id": TRACE,
        "project_name": "tea-bot",
        "name": "rag",
        "start_time": "2026-03-01T10:15:00.000000Z",
        "input": {"question": "How hot is tea?"},
        "last_updated_at": "2026-03-01T10:15:00.000001Z",
        **more,
    }


def span(own: str, kind: str, **more: JsonValue) -> JsonObject:
    return {
        "id": own,
        "trace_id": TRACE,
        "project_name": "tea-bot",
        "name": own,
        "type": kind,
        "start_time": "2026-03-01T10:15:00.100000Z",
        "end_time": "2026-03-01T10:15:00.200000Z",
        **more,
    }


OVER = trace(
    end_time="2026-03-01T10:15:02Z",
    output={"output": "Hot."},
    tags=["prod"],
    thread_id="s-1",
    metadata={"tenant": "acme"},
    last_updated_at="2026-03-01T10:15:02Z",
)
FOUND = span("search", "tool", input={"query": "hot tea"}, output={"output": DOCUMENTS})
SAID = span("say", "llm", input={"prompt": "How hot is tea?"}, output={"output": "Hot."}, model="tea-1b")


def piece(row: JsonObject) -> Piece:
    assert adapter_for(row, ()).name == "opik"
    (found,) = OpikAdapter().read(row)
    assert isinstance(found, Piece)
    assert found.trace == TraceKey("opik", TRACE)
    return found


def step(row: JsonObject) -> Step:
    (one,) = piece(row).steps
    return one


def test_batches_of_traces_and_of_spans_are_one_exchange_in_any_order() -> None:
    rows: list[JsonObject] = [{"traces": [trace()]}, {"spans": [FOUND, SAID]}, {"traces": [OVER]}]
    for order in (rows, rows[::-1]):
        (exchange,) = assemble([one for row in order for one in piece(row).steps], TRACE).exchanges
        assert (exchange["app"], exchange["question"], exchange["answer"]) == ("tea-bot", "How hot is tea?", "Hot.")
        assert exchange["generator_model"] == "tea-1b"
        assert exchange["passages"] == [
            {"id": "tea-1", "text": "Tea is brewed at 90 °C.", "score": 0.9, "metadata": {}}
        ]


def test_a_trace_begins_without_an_end_and_ends_with_one() -> None:
    begun, over = piece(trace()), piece(OVER)
    assert (begun.ends, over.ends, over.app) == (False, True, "tea-bot")
    assert over.steps[0].order > begun.steps[0].order
    assert over.steps[0].metadata == {"tenant": "acme", "session": "s-1", "tags": ["prod"]}


def test_a_span_lies_below_its_parent_or_the_trace() -> None:
    assert step(FOUND).parent == TRACE
    assert step({**FOUND, "parent_span_id": "above"}).parent == "above"
    assert step(FOUND).is_root is False


def test_a_tool_that_gives_documents_has_retrieved() -> None:
    assert (step(FOUND).kind, step(FOUND).documents) == (StepKind.RETRIEVER, READ)
    assert step({**FOUND, "output": {"output": "22 °C"}}).kind is StepKind.OTHER


def test_an_error_is_told_when_the_trace_is_over() -> None:
    assert step({**OVER, "error_info": {"exception_type": "ValueError"}}).has_failed
    assert step({**trace(), "error_info": {}}).has_failed is None


def test_a_trace_without_contents_only_connects_its_spans() -> None:
    assert step({**trace(), "input": None}).kind is None


@pytest.mark.parametrize(
    "row",
    [
        {"trace": OVER, "spans": [FOUND], "downloaded_at": "2026-03-02T00:00:00"},
        {"page": 1, "size": 10, "total": 2, "content": [OVER, FOUND]},
        {"traces": [OVER], "spans": [FOUND]},
    ],
)
def test_traces_come_out_of_the_service_with_their_spans(row: JsonObject) -> None:
    assert [one.id for one in piece(row).steps] == [TRACE, "search"]


@pytest.mark.parametrize(
    "row",
    [
        {"id": "1", "project_name": "p", "start_time": 1, "input": "Q", "output": "A"},
        {"id": TRACE, "project_name": "p", "start_time": 1, "input": "Q", "output": "A", "contexts": []},
        {"id": "1", "type": "llm", "trace_id": "2", "answer": "A"},
        {"traces": [{"name": "a route"}]},
        {"spans": []},
        {"traces": "none"},
        {"trace": {"a": 1}, "spans": [FOUND]},
    ],
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not OpikAdapter().matches(row, ())
