from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.mlflow import MlflowAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason

DOCUMENTS: JsonValue = [{"page_content": "Tea is brewed at 90 °C.", "metadata": {"chunk_id": "tea-1", "score": 0.9}}]
SAID: JsonValue = [{"message": {"role": "assistant", "content": "Hot."}}]
BEGUN = 1_772_360_100_000_000_000


def span(own: str, parent: str | None, kind: str, given: JsonValue, gave: JsonValue, **more: JsonValue) -> JsonObject:
    """A span of version 3; every attribute is JSON in a string."""
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": gave, **more}
    return {
        "trace_id": "AAAAAAAAAAAAAAAAAAAAAQ==",
        "span_id": own,
        "parent_span_id": parent,
        "name": own,
        "start_time_unix_nano": BEGUN,
        "end_time_unix_nano": BEGUN + 1000,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": {name: orjson.dumps(value).decode() for name, value in attributes.items()},
    }


SPANS: list[JsonValue] = [
    span("rag", None, "CHAIN", {"question": "How hot is tea?"}, "Hot."),
    span("search", "rag", "RETRIEVER", {"query": "tea"}, DOCUMENTS),
    span("say", "rag", "CHAT_MODEL", {"messages": []}, {"choices": SAID}, **{"mlflow.llm.model": "tea-1b"}),
]
INFO: JsonObject = {
    "trace_id": "tr-1",
    "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "7"}},
    "request_time": "2026-03-01T10:15:00Z",
    "state": "OK",
    "trace_metadata": {"mlflow.trace.user": "u-1", "mlflow.traceOutputs": "cut…"},
    "tags": {"mlflow.traceName": "rag", "app": "tea-bot", "stage": "prod"},
    "request_preview": "cut…",
}


def trace(info: JsonObject | None = None, spans: JsonValue = None) -> JsonObject:
    return {"info": {**INFO, **(info or {})}, "data": {"spans": SPANS if spans is None else spans}}


def exchange(row: JsonObject) -> JsonObject:
    assert adapter_for(row, ()).name == "mlflow"
    (found,) = MlflowAdapter().read(row)
    assert isinstance(found, dict)
    return found


def test_a_trace_is_an_exchange() -> None:
    assert exchange(trace()) == {
        "interaction_id": "tr-1",
        "app": "tea-bot",
        "occurred_at": BEGUN + 1000,
        "question": "How hot is tea?",
        "passages": [
            {
                "id": "tea-1",
                "text": "Tea is brewed at 90 °C.",
                "score": 0.9,
                "metadata": {"chunk_id": "tea-1", "score": 0.9},
            }
        ],
        "answer": "Hot.",
        "generator_model": "tea-1b",
        "metadata": {
            "trace_id": "tr-1",
            "span_id": "rag",
            "user": "u-1",
            "tags": {"app": "tea-bot", "stage": "prod"},
            "experiment_id": "7",
        },
    }


@pytest.mark.parametrize("column", [orjson.dumps(trace()).decode(), trace()])
def test_a_row_of_a_search_has_the_trace_in_a_column(column: JsonValue) -> None:
    row: JsonObject = {"trace_id": "tr-1", "trace": column, "request": {"question": "cut…"}, "response": "cut…"}
    assert exchange(row) == exchange(trace())


def test_a_row_may_have_the_spans_in_a_column() -> None:
    row = {**INFO, "spans": SPANS, "request": "…", "response": "…"}
    assert exchange(row)["answer"] == "Hot."


def test_version_2_has_other_names() -> None:
    spans: list[JsonValue] = [
        {
            "name": one["name"],
            "context": {"span_id": f"0x{one['span_id']}", "trace_id": "0x1"},
            "parent_id": f"0x{one['parent_span_id']}" if one["parent_span_id"] else None,
            "start_time": BEGUN,
            "end_time": BEGUN + 1000,
            "status_code": "OK",
            "attributes": one["attributes"],
        }
        for one in SPANS
        if isinstance(one, dict)
    ]
    info: JsonObject = {"request_id": "tr-1", "experiment_id": "7", "timestamp_ms": 1_772_360_100_000, "status": "OK"}
    found = exchange({"info": info, "data": {"spans": spans, "request": "{}", "response": "{}"}})
    assert (found["interaction_id"], found["answer"], found["generator_model"]) == ("tr-1", "Hot.", "tea-1b")
    assert found["metadata"] == {"trace_id": "tr-1", "span_id": "0xrag", "experiment_id": "7"}


def test_spans_without_times_were_when_the_trace_was_asked_for() -> None:
    untimed: list[JsonValue] = [
        {name: value for name, value in one.items() if "unix_nano" not in name}
        for one in SPANS
        if isinstance(one, dict)
    ]
    assert exchange(trace(spans=untimed))["occurred_at"] == "2026-03-01T10:15:00Z"


def test_a_function_that_gives_documents_has_retrieved_whatever_its_type() -> None:
    spans = [SPANS[0], span("lookup", "rag", "UNKNOWN", {"query": "tea"}, DOCUMENTS)]
    assert exchange(trace(spans=spans))["passages"] == exchange(trace())["passages"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (trace({"state": "ERROR"}), SkipReason.NO_ANSWER),
        (trace({"state": "IN_PROGRESS"}), SkipReason.NO_ANSWER),
        (trace({"state": "TraceStatus.IN_PROGRESS"}), SkipReason.NO_ANSWER),
        (trace(spans=SPANS[:1]), SkipReason.NOT_RAG),
        (trace(spans=[]), SkipReason.NOT_RAG),
        (trace(spans=[span("search", None, "RETRIEVER", "tea", DOCUMENTS)]), SkipReason.NO_ANSWER),
    ],
)
def test_a_trace_without_an_exchange_says_why(row: JsonObject, reason: SkipReason) -> None:
    assert tuple(MlflowAdapter().read(row)) == (reason,)


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        (trace({"trace_id": " "}), "mlflow.trace_id: missing"),
        (trace(spans="…"), "mlflow.spans: must be a list"),
        (trace(spans=[{"name": "x"}]), "mlflow.span_id: missing"),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused_by_name(row: JsonObject, detail: str) -> None:
    with pytest.raises(UnusablePayload) as refused:
        tuple(MlflowAdapter().read(row))
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    "row",
    [
        {"info": {"a": 1}, "data": {"spans": []}},
        {"trace": "a text", "response": "A", "contexts": []},
        {"spans": [], "answer": "A"},
        {"trace": "{", "answer": "A"},
    ],
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not MlflowAdapter().matches(row, ())
