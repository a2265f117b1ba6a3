from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.decoding import Decoded, Reading, Rejected, Skipped, decode_exchange, decode_payload
from schemas.envelope import JsonObject
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from schemas.traces.assembly import Assembly, assemble
from schemas.traces.piece import Piece
from schemas.traces.step import StepKind
from tests.unit.traces.spans import BEGUN_NS, TRACE_ID, json_bytes, proto_bytes, request, span, span_id

NOW = datetime(2027, 1, 1, tzinfo=UTC)
KIND = "openinference.span.kind"
QUESTION, ANSWER = "How is tea drunk?", "Hot. And with milk."


def chain(name: str, parent: str | None, at_ms: int = 0, **more: JsonValue) -> JsonObject:
    return span(name, parent, at_ms, {KIND: "CHAIN", "input.value": QUESTION, "output.value": ANSWER}, **more)


def retriever(name: str, parent: str | None, *texts: str, at_ms: int = 1) -> JsonObject:
    listed: JsonObject = {f"retrieval.documents.{place}.document.content": text for place, text in enumerate(texts)}
    ids: JsonObject = {f"retrieval.documents.{place}.document.id": f"d-{place}" for place in range(len(texts))}
    return span(name, parent, at_ms, {KIND: "RETRIEVER", "input.value": "tea", **listed, **ids})


def model(name: str, parent: str | None, at_ms: int = 3) -> JsonObject:
    said: JsonObject = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": ANSWER,
    }
    return span(name, parent, at_ms, {KIND: "LLM", "llm.model_name": "m-1", **said})


SPANS = [
    chain("root", None),
    retriever("found", "root", "Tea is drunk hot.", "Milk is drunk cold."),
    span("GET /x", "found", 1, {"http.method": "GET"}),
    model("said", "root"),
]


def read(value: bytes, *, max_bytes: int = 1 << 30) -> Reading:
    return decode_payload(value, (), max_bytes=max_bytes, default_app="default", received_at=NOW)


def assembled(*values: bytes) -> Assembly:
    """What the messages make, which are of one trace."""
    pieces = [piece for value in values for piece in read(value).pieces]
    assert {piece.trace.id for piece in pieces} == {TRACE_ID}
    return assemble((step for piece in pieces for step in piece.steps), TRACE_ID)


def rejected(value: bytes) -> tuple[RejectReason, str]:
    (result,) = read(value).results
    assert isinstance(result, Rejected)
    return result.reason, result.detail


@pytest.mark.parametrize("encode", [json_bytes, proto_bytes])
def test_a_trace_in_one_message_is_an_exchange(encode: Callable[..., bytes]) -> None:
    assembly = assembled(encode(*SPANS))
    (native,) = assembly.exchanges
    decoded = decode_exchange(native, "otlp", default_app="default", received_at=NOW)
    assert isinstance(decoded, Decoded)
    exchange = decoded.interaction
    assert (exchange.question, exchange.answer, exchange.app) == (QUESTION, ANSWER, "desk")
    assert (exchange.interaction_id, exchange.generator_model) == (TRACE_ID, "m-1")
    assert [(one.id, one.text) for one in exchange.passages] == [
        ("d-0", "Tea is drunk hot."),
        ("d-1", "Milk is drunk cold."),
    ]
    assert exchange.occurred_at == datetime.fromtimestamp(BEGUN_NS // 10**9, UTC).replace(microsecond=1000)
    assert assembly.is_complete


@given(st.permutations(SPANS), st.lists(st.sampled_from(SPANS)), st.sampled_from([json_bytes, proto_bytes]))
def test_one_span_a_message_in_any_order_twice_and_in_either_encoding_is_the_same_exchange(
    spans: list[JsonObject], again: list[JsonObject], encode: Callable[..., bytes]
) -> None:
    assert assembled(*(encode(one) for one in [*spans, *again])) == assembled(json_bytes(*SPANS))


def test_a_message_of_many_traces_has_a_piece_for_each() -> None:
    other = "1" * 32
    reading = read(json_bytes(SPANS[0], chain("other", None, traceId=other), SPANS[1]))
    assert [(piece.trace.system, piece.trace.id, len(piece.steps)) for piece in reading.pieces] == [
        ("otlp", TRACE_ID, 2),
        ("otlp", other, 1),
    ]
    assert [piece.ends for piece in reading.pieces] == [True, True]


def test_a_span_of_no_convention_connects_others() -> None:
    (piece,) = read(json_bytes(span("GET /x", "root", 1, {"http.method": "GET"}))).pieces
    (step,) = piece.steps
    assert (step.id, step.parent, step.kind, step.app) == (span_id("GET /x"), span_id("root"), StepKind.OTHER, "desk")


def only_step(value: JsonValue) -> tuple[str | None, bool | None]:
    (piece,) = read(orjson.dumps(value)).pieces
    return piece.steps[0].parent, piece.steps[0].is_root


def test_a_parent_in_another_process_leaves_a_root() -> None:
    assert only_step(request(chain("root", "web", flags=0x300))) == (span_id("web"), True)
    assert only_step(request(chain("root", "web", flags=0x100))) == (span_id("web"), False)
    assert only_step(request(chain("root", "web", parentSpanId="0" * 16))) == (None, True)
    assert only_step(request(chain("root", None, parentSpanId=None))) == (None, True)


def test_a_span_that_is_not_over_ends_nothing() -> None:
    (piece,) = read(json_bytes(chain("root", None, endTimeUnixNano="0"))).pieces
    assert not piece.ends


def test_protobufs_own_json_and_older_names_are_read() -> None:
    made: JsonObject = {
        "trace_id": "CvdlGRbNQ92ESOshHIAxnA==",
        "span_id": "cm9vdF9fX18=",
        "name": "root",
        "start_time_unix_nano": BEGUN_NS,
        "end_time_unix_nano": BEGUN_NS + 1,
        "status": {"code": "STATUS_CODE_ERROR"},
        "attributes": [{"key": KIND, "value": {"string_value": "CHAIN"}}],
    }
    group: JsonObject = {"instrumentationLibrarySpans": [{"instrumentationLibrary": {"name": "x"}, "spans": [made]}]}
    (piece,) = read(orjson.dumps({"resource_spans": [group]})).pieces
    (step,) = piece.steps
    assert (piece.trace.id, step.id, step.kind, step.has_failed) == (TRACE_ID, span_id("root"), StepKind.CHAIN, True)


def test_spans_without_a_request_around_them_are_read() -> None:
    assert assembled(orjson.dumps({"spans": SPANS})).exchanges
    assert assembled(*(orjson.dumps(one) for one in SPANS)).is_complete


@pytest.mark.parametrize("row", [{"resourceSpans": []}, {"resourceLogs": []}, request()])
def test_a_request_that_holds_nothing_is_not_rag(row: JsonObject) -> None:
    assert read(orjson.dumps(row)).results == (Skipped(SkipReason.NOT_RAG),)


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"resourceSpans": {}}, "resourceSpans: must be a list"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}, "spans.0: must be an object"),
        (
            request(chain("root", None, traceId="0" * 32)),
            "traceId: must be 16 bytes in hexadecimal, not all of them zero",
        ),
        (request(chain("root", None, spanId="xyz")), "spanId: must be 8 bytes in hexadecimal, not all of them zero"),
        (
            request(chain("root", None, parentSpanId=7)),
            "parentSpanId: must be 8 bytes in hexadecimal, not all of them zero",
        ),
    ],
)
def test_what_breaks_the_form_is_named(row: JsonObject, detail: str) -> None:
    assert rejected(orjson.dumps(row)) == (RejectReason.WRONG_SHAPE, detail)


def _anything() -> st.SearchStrategy[JsonValue]:
    names = st.sampled_from(["spans", "traceId", "spanId", "attributes", "key", "value", "stringValue", "status", "x"])
    leaves: st.SearchStrategy[JsonValue] = (
        st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a" * 32])
    )
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4))


@given(
    st.dictionaries(st.sampled_from(["resourceSpans", "resourceLogs", "spans", "scopeSpans"]), _anything(), min_size=1)
)
def test_nothing_in_the_place_of_a_request_makes_reading_fail(row: JsonObject) -> None:
    reading = read(orjson.dumps(row))
    assert reading.results or reading.pieces


@given(st.dictionaries(st.sampled_from(["traceId", "flags", "attributes", "status", "events", "name"]), _anything()))
def test_nothing_in_a_span_makes_reading_fail(fields: JsonObject) -> None:
    reading = read(orjson.dumps(request({**chain("root", None), **fields})))
    assert reading.results or reading.pieces


# Hostile traces.


def _chain_of(size: int, *, is_round: bool) -> list[JsonObject]:
    spans = [chain("", None, spanId=f"{place + 1:016x}", parentSpanId=f"{place:016x}") for place in range(size)]
    spans[0] = chain("", None, spanId=f"{1:016x}", parentSpanId=f"{size:016x}" if is_round else "")
    return spans


def test_a_trace_of_very_many_spans_has_an_outcome() -> None:
    size = 5_000
    spans = _chain_of(size, is_round=False)
    found = retriever("found", None, "Tea is drunk hot.")
    assembly = assembled(proto_bytes(*spans, {**found, "parentSpanId": f"{size:016x}"}))
    assert ([one["answer"] for one in assembly.exchanges], assembly.is_complete) == ([ANSWER], True)


def test_parents_in_a_circle_have_an_outcome() -> None:
    spans = _chain_of(1_000, is_round=True)
    assert assembled(json_bytes(*spans)) == Assembly(reason=SkipReason.NOT_RAG)
    found = {**retriever("found", None, "Tea is drunk hot."), "parentSpanId": f"{7:016x}"}
    told = {**model("said", None), "parentSpanId": f"{7:016x}"}
    assembly = assembled(json_bytes(*spans, found, told))
    assert ([one["answer"] for one in assembly.exchanges], assembly.is_complete) == ([ANSWER], False)
    alone = chain("alone", "alone")
    assert assembled(json_bytes(alone)) == Assembly(reason=SkipReason.NOT_RAG)


def test_a_very_long_attribute_is_read_in_its_length_or_is_too_large() -> None:
    long = {**SPANS[0], **span("root", None, 0, {KIND: "CHAIN", "output.value": "[{" * 1_000_000})}
    value = proto_bytes(long, *SPANS[1:])
    assert assembled(value).exchanges[0]["answer"] == ANSWER
    (result,) = read(value, max_bytes=1 << 20).results
    assert isinstance(result, Rejected)
    assert result.reason is RejectReason.TOO_LARGE


def test_the_same_span_with_other_content_is_one_span_whichever_came_first() -> None:
    other = span("root", None, 0, {KIND: "CHAIN", "input.value": "Other?", "output.value": "Other."})
    one, two = json_bytes(*SPANS), json_bytes(other)
    assert assembled(one, two) == assembled(two, one)
    assert len(assembled(one, two).exchanges) == 1


def test_spans_of_another_trace_below_this_one_are_not_of_it() -> None:
    stranger = {**retriever("strange", "root", "Poison."), "traceId": "1" * 32}
    reading = read(json_bytes(*SPANS, stranger))
    mine, other = reading.pieces
    assert assemble(mine.steps, TRACE_ID) == assembled(json_bytes(*SPANS))
    assert assemble(other.steps, other.trace.id).reason is SkipReason.NO_ANSWER


def test_a_value_in_values_ends_at_the_depth_of_all_json() -> None:
    value: JsonValue = "x"
    for _ in range(40):
        value = [value]
    assert rejected(proto_bytes(span("root", None, 0, {"deep": value})))[0] is RejectReason.TOO_DEEP


def test_more_documents_than_an_exchange_may_have_are_named() -> None:
    texts = [f"Text {place}." for place in range(1_001)]
    (native,) = assembled(json_bytes(SPANS[0], retriever("found", "root", *texts))).exchanges
    result = decode_exchange(native, "otlp", default_app="default", received_at=NOW)
    assert isinstance(result, Rejected)
    assert result.detail == "passages: too_long"


def test_a_piece_names_its_adapter() -> None:
    (piece,) = read(json_bytes(*SPANS)).pieces
    assert isinstance(piece, Piece)
    assert piece.adapter == "otlp"
