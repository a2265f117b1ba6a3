"""Spans of made-up traces, in both encodings of OTLP."""

from __future__ import annotations

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pydantic import JsonValue

from schemas.envelope import JsonObject

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
BEGUN_NS = 1_796_000_000_000_000_000


def span_id(name: str) -> str:
    """An id that shows its name: eight letters at most."""
    return name.encode().ljust(8, b"_").hex()


def span(name: str, parent: str | None, at_ms: int, attributes: JsonObject, **more: JsonValue) -> JsonObject:
    """A span in OTLP/JSON that takes a millisecond."""
    return {
        "traceId": TRACE_ID,
        "spanId": span_id(name),
        "parentSpanId": span_id(parent) if parent else "",
        "name": name,
        "startTimeUnixNano": str(BEGUN_NS + at_ms * 1_000_000),
        "endTimeUnixNano": str(BEGUN_NS + (at_ms + 1) * 1_000_000),
        "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
        "status": {"code": 1},
        **more,
    }


def any_value(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": any_value(one)} for key, one in value.items()]}}
    return {} if value is None else {"stringValue": value}


def request(*spans: JsonObject, service: str = "desk") -> JsonObject:
    resource: JsonObject = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scope: JsonObject = {"scope": {"name": "made up", "version": "1"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def json_bytes(*spans: JsonObject) -> bytes:
    return orjson.dumps(request(*spans))


def proto_bytes(*spans: JsonObject) -> bytes:
    """The same request in protobuf."""
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="desk")))
    scope = group.scope_spans.add()
    scope.scope.name = "made up"
    scope.spans.extend(_proto(one) for one in spans)
    return message.SerializeToString()


def _proto(logged: JsonObject) -> Span:
    status, flags, attributes = logged["status"], logged.get("flags", 0), logged["attributes"]
    assert isinstance(status, dict)
    assert isinstance(flags, int)
    made = Span(
        trace_id=bytes.fromhex(str(logged["traceId"])),
        span_id=bytes.fromhex(str(logged["spanId"])),
        parent_span_id=bytes.fromhex(str(logged["parentSpanId"])),
        name=str(logged["name"]),
        start_time_unix_nano=int(str(logged["startTimeUnixNano"])),
        end_time_unix_nano=int(str(logged["endTimeUnixNano"])),
        flags=flags,
    )
    made.status.code = status["code"]  # type: ignore[assignment] # an enumeration's number
    made.attributes.extend(_pairs(attributes))
    return made


def _pairs(pairs: JsonValue) -> list[KeyValue]:
    assert isinstance(pairs, list)
    return [
        KeyValue(key=str(pair["key"]), value=_proto_value(pair["value"])) for pair in pairs if isinstance(pair, dict)
    ]


def _proto_value(value: JsonValue) -> AnyValue:
    assert isinstance(value, dict)
    for kind, held in value.items():
        if kind == "arrayValue":
            assert isinstance(held, dict)
            values = held["values"]
            assert isinstance(values, list)
            return AnyValue(array_value=ArrayValue(values=[_proto_value(one) for one in values]))
        if kind == "kvlistValue":
            assert isinstance(held, dict)
            return AnyValue(kvlist_value=KeyValueList(values=_pairs(held["values"])))
        if kind == "stringValue":
            return AnyValue(string_value=str(held))
        if kind == "intValue":
            return AnyValue(int_value=int(str(held)))
        if kind == "boolValue":
            return AnyValue(bool_value=bool(held))
        return AnyValue(double_value=float(str(held)))
    return AnyValue()
