from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.adapter import Adapter
from schemas.adapters.span_rows import OtelSpanAdapter, PhoenixAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Document, Step, StepKind

TRACE, SPAN, PARENT = "c" * 32, "a" * 16, "b" * 16
READ = (Document(id="tea-1", text="Tea is brewed at 90 °C.", score=0.9, metadata={"source": "tea.md"}),)
AT: JsonObject = {
    "name": "search",
    "parent_id": PARENT,
    "start_time": "2026-03-01T10:15:00+00:00",
    "end_time": "2026-03-01T10:15:01+00:00",
}
DOCUMENT: JsonObject = {
    "document.id": "tea-1",
    "document.content": "Tea is brewed at 90 °C.",
    "document.score": 0.9,
    "document.metadata": {"source": "tea.md"},
}
FLAT: JsonObject = {
    "input.value": "hot tea",
    "retrieval.documents.0.document.id": "tea-1",
    "retrieval.documents.0.document.content": "Tea is brewed at 90 °C.",
    "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.0.document.metadata.source": "tea.md",
}
API: JsonObject = {
    **AT,
    "id": "U3BhbjoxMg==",
    "context": {"trace_id": TRACE, "span_id": SPAN},
    "span_kind": "RETRIEVER",
    "status_code": "OK",
    "events": [],
    "attributes": FLAT,
}
NESTED: JsonObject = {
    **API,
    "attributes": {
        "input": {"value": "hot tea"},
        "retrieval": {
            "documents": [
                {
                    "document": {
                        "id": "tea-1",
                        "content": "Tea is brewed at 90 °C.",
                        "score": 0.9,
                        "metadata": {"source": "tea.md"},
                    }
                }
            ]
        },
    },
}
FRAME: JsonObject = {
    **AT,
    "context.span_id": SPAN,
    "context.trace_id": TRACE,
    "span_kind": "RETRIEVER",
    "status_code": "OK",
    "attributes.openinference.span.kind": "RETRIEVER",
    "attributes.input.value": "hot tea",
    "attributes.retrieval.documents": [DOCUMENT],
    "attributes.llm.model_name": None,
}
PRINTED: JsonObject = {
    **AT,
    "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}", "trace_state": "[]"},
    "kind": "SpanKind.INTERNAL",
    "parent_id": f"0x{PARENT}",
    "status": {"status_code": "UNSET"},
    "attributes": {"openinference.span.kind": "RETRIEVER", **FLAT},
    "resource": {"attributes": {"service.name": "tea-bot"}, "schema_url": ""},
}


def piece(row: JsonObject, name: str = "phoenix") -> Piece:
    adapter: Adapter = adapter_for(row, ())
    assert adapter.name == name
    (found,) = adapter.read(row)
    assert isinstance(found, Piece)
    assert found.trace == TraceKey("otlp", TRACE)
    return found


def step(row: JsonObject, name: str = "phoenix") -> Step:
    (one,) = piece(row, name).steps
    return one


@pytest.mark.parametrize(
    ("row", "name"), [(API, "phoenix"), (NESTED, "phoenix"), (FRAME, "phoenix"), (PRINTED, "otel_span")]
)
def test_a_span_says_the_same_however_its_attributes_are_laid_out(row: JsonObject, name: str) -> None:
    found = step(row, name)
    assert (found.id, found.parent, found.is_root, found.kind) == (SPAN, PARENT, False, StepKind.RETRIEVER)
    assert (found.question, found.documents) == ("hot tea", READ)
    assert (found.ended_ns or 0) - (found.begun_ns or 0) == 10**9


def test_a_span_without_a_parent_that_is_over_ends_the_trace() -> None:
    root: JsonObject = {
        **API,
        "parent_id": None,
        "span_kind": "CHAIN",
        "project_name": "tea-bot",
        "attributes": {"input": {"value": "How hot?"}, "output": {"value": "Hot."}, "metadata": {"tenant": "acme"}},
    }
    held = piece(root)
    (one,) = held.steps
    assert (held.ends, held.app, one.question, one.answer) == (True, "tea-bot", "How hot?", "Hot.")
    assert one.metadata == {"tenant": "acme"}
    assert not piece({**root, "end_time": None}).ends


def test_a_printed_span_names_its_service_and_its_failure() -> None:
    failed = step({**PRINTED, "status": {"status_code": "ERROR"}}, "otel_span")
    assert (failed.app, failed.has_failed) == ("tea-bot", True)
    assert step(PRINTED, "otel_span").has_failed is False


def test_a_page_of_the_api_is_a_piece_of_each_trace() -> None:
    other: JsonObject = {**API, "context": {"trace_id": "d" * 32, "span_id": SPAN}}
    found = list(PhoenixAdapter().read({"data": [API, other, NESTED], "next_cursor": None}))
    assert [len(one.steps) for one in found if isinstance(one, Piece)] == [2, 1]


def test_a_page_of_spans_as_otlp_has_them_is_read_as_such() -> None:
    span: JsonObject = {
        "trace_id": TRACE,
        "span_id": SPAN,
        "name": "search",
        "start_time_unix_nano": 1_772_360_100_000_000_000,
        "end_time_unix_nano": 1_772_360_101_000_000_000,
        "attributes": [{"key": "openinference.span.kind", "value": {"string_value": "CHAIN"}}],
    }
    assert step({"data": [span], "next_cursor": "x"}, "otlp").kind is StepKind.CHAIN


def test_deep_attributes_end_somewhere() -> None:
    value: JsonValue = "hot tea"
    for _ in range(90):
        value = {"a": value}
    assert step({**API, "attributes": {"input": value}}).question is None


def test_a_span_without_ids_is_refused_by_name() -> None:
    with pytest.raises(UnusablePayload) as refused:
        tuple(OtelSpanAdapter().read({**PRINTED, "context": {}}))
    assert refused.value.detail == "context.trace_id: missing"


@pytest.mark.parametrize(
    "row",
    [
        {"context": ["a passage"], "answer": "A", "question": "Q"},
        {"context": {"trace_id": TRACE}, "span_kind": "CHAIN"},
        {"context": {"trace_id": TRACE, "span_id": SPAN}, "answer": "A"},
        {"data": []},
        {"data": [API], "answer": "A"},
        {"kind": "SpanKind.INTERNAL", "context": "text"},
    ],
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not PhoenixAdapter().matches(row, ())
    assert not OtelSpanAdapter().matches(row, ())
