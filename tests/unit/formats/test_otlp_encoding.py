from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from pydantic import JsonValue

from schemas.adapters.otlp_json import records_of, spans_of, value_of
from schemas.encodings.otlp import otlp_as_json
from schemas.envelope import JsonObject
from tests.unit.traces.spans import TRACE_ID, json_bytes, proto_bytes, span, span_id

CONTENT: JsonObject = {"input.value": "Is tea hot?\n\x00", "n": -(2**63), "list": ["a", {"b": True}], "none": None}
SPANS = (span("root", None, 0, CONTENT, flags=256), span("found", "root", 1, {"score": 0.25}, status={"code": 2}))


def transcoded(value: bytes) -> JsonObject:
    text = otlp_as_json(value)
    assert text is not None
    content: JsonObject = orjson.loads(text)
    return content


def logs(**fields: object) -> ExportLogsServiceRequest:
    message = ExportLogsServiceRequest()
    record = message.resource_logs.add().scope_logs.add().log_records.add()
    for name, value in fields.items():
        setattr(record, name, value)
    return message


def test_a_request_in_protobuf_says_the_same_as_in_json() -> None:
    content = transcoded(proto_bytes(*SPANS))
    assert list(spans_of(content)) == list(spans_of(orjson.loads(json_bytes(*SPANS))))


def test_ids_are_hexadecimal_and_no_parent_is_no_parent() -> None:
    root, found = spans_of(transcoded(proto_bytes(*SPANS)))
    assert (root.trace_id, root.span_id, root.parent_id) == (TRACE_ID, span_id("root"), None)
    assert (found.parent_id, found.has_failed, found.attributes) == (span_id("root"), True, {"score": 0.25})


def test_logs_are_told_from_traces() -> None:
    message = logs(time_unix_nano=5, trace_id=bytes.fromhex(TRACE_ID), span_id=b"12345678", event_name="e")
    message.resource_logs[0].scope_logs[0].log_records[0].body.string_value = "Yes."
    content = transcoded(message.SerializeToString())
    assert list(content) == ["resourceLogs"]
    (record,) = records_of(content)
    assert (record.trace_id, record.span_id, record.name) == (TRACE_ID, b"12345678".hex(), "e")
    assert (record.logged_ns, record.body) == (5, "Yes.")


def test_log_records_without_a_trace_belong_to_none() -> None:
    assert list(records_of(transcoded(logs(observed_time_unix_nano=5).SerializeToString()))) == []


def _metrics() -> bytes:
    message = ExportMetricsServiceRequest()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name, metric.description = "sixteen letters.", "8 bytes."
    metric.gauge.data_points.add().as_int = 3
    return message.SerializeToString()


def _with(**fields: bytes | int) -> bytes:
    message = ExportTraceServiceRequest()
    made = (
        message.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1)
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return message.SerializeToString()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\n",
        b"\n\n",
        b"\n\x00",
        b'\n{"answer": "A"}',
        b"\n not JSON and no protobuf",
        proto_bytes(*SPANS)[:-1],
        proto_bytes(*SPANS) + b"x",
        proto_bytes(*SPANS) + b"\x10\x01",
        proto_bytes(),
        ExportTraceServiceRequest().SerializeToString(),
        _metrics(),
        _with(trace_id=b"short"),
        _with(span_id=b""),
        _with(parent_span_id=b"four"),
        _with(start_time_unix_nano=0),
        logs(severity_text="no time").SerializeToString(),
        logs(time_unix_nano=5, trace_id=b"short").SerializeToString(),
    ],
)
def test_what_is_no_request_is_not_taken_for_one(value: bytes) -> None:
    assert otlp_as_json(value) is None


def test_a_field_that_is_not_known_yet_is_passed_over() -> None:
    message = ExportTraceServiceRequest()
    made = (
        message.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1)
    )
    made.MergeFromString(made.SerializeToString() + b"\xa0\x06\x01")
    assert [one.span_id for one in spans_of(transcoded(message.SerializeToString()))] == [b"s".hex() * 8]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_none(noise: bytes) -> None:
    assert otlp_as_json(b"\n" + noise) is None or orjson.loads(otlp_as_json(b"\n" + noise) or b"")


@given(st.data())
def test_a_request_that_was_cut_or_changed_is_still_a_request_or_none(data: st.DataObject) -> None:
    value = bytearray(proto_bytes(*SPANS))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    text = otlp_as_json(bytes(value[: data.draw(st.integers(0, len(value)))]))
    assert text is None or orjson.loads(text).keys() <= {"resourceSpans", "resourceLogs"}


def test_numbers_that_json_has_not_are_no_values() -> None:
    message = ExportTraceServiceRequest()
    made = (
        message.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1)
    )
    made.attributes.add(key="score").value.double_value = math.nan
    (read,) = spans_of(transcoded(message.SerializeToString()))
    assert read.attributes == {"score": None}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"stringValue": "a"}, "a"),
        ({"intValue": "-7"}, -7),
        ({"intValue": 7}, 7),
        ({"intValue": "seven"}, None),
        ({"doubleValue": 0.5}, 0.5),
        ({"boolValue": False}, False),
        ({"bytesValue": "AQ=="}, "AQ=="),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({"string_value": "a"}, "a"),
        ({}, None),
        ("a", None),
        ({"newValue": 1}, None),
    ],
)
def test_a_value_is_read_in_the_form_of_json(value: JsonValue, read: JsonValue) -> None:
    assert value_of(value) == read


def test_keys_and_values_in_protobuf_become_objects() -> None:
    inner = KeyValueList(
        values=[KeyValue(key="k", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)])))]
    )
    message = logs(time_unix_nano=5, trace_id=bytes.fromhex(TRACE_ID))
    message.resource_logs[0].scope_logs[0].log_records[0].body.kvlist_value.CopyFrom(inner)
    (record,) = records_of(transcoded(message.SerializeToString()))
    assert record.body == {"k": [1]}
