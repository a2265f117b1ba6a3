"""OTLP in protobuf, as collectors write it by default, written again as OTLP/JSON.

The bytes say nothing of what they are: a request begins with a newline, which JSON allows, and traces, logs and
metrics all have their content in field 1. So a value is OTLP if it parses as such to the last byte, its ids have the
right size, and no field that is known has the form of another message's.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

import orjson
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from pydantic import JsonValue

# Field 1 with a length: all that a request has.
_FIRST_FIELD = b"\x0a"
_TRACE_ID_BYTES = 16
_SPAN_ID_BYTES = 8

_RequestT = TypeVar("_RequestT", ExportTraceServiceRequest, ExportLogsServiceRequest)


def otlp_as_json(value: bytes) -> bytes | None:
    """Return a request to export traces or logs as OTLP/JSON with its ids in hexadecimal, or None if it is neither."""
    if not value.startswith(_FIRST_FIELD):
        return None
    content = _traces(value) or _logs(value)
    return None if content is None else orjson.dumps(content)


def _traces(value: bytes) -> JsonValue:
    request = _parsed(ExportTraceServiceRequest(), value)
    if request is None:
        return None
    groups = request.resource_spans
    scopes = [scope for group in groups for scope in group.scope_spans]
    spans = [span for scope in scopes for span in scope.spans]
    if not _fit(chain(groups, (group.resource for group in groups), scopes, spans)) or not _are_begun(spans):
        return None
    return {"resourceSpans": [_resource_spans(group) for group in groups]}


def _logs(value: bytes) -> JsonValue:
    request = _parsed(ExportLogsServiceRequest(), value)
    if request is None:
        return None
    groups = request.resource_logs
    scopes = [scope for group in groups for scope in group.scope_logs]
    records = [record for scope in scopes for record in scope.log_records]
    if not _fit(chain(groups, (group.resource for group in groups), scopes, records)) or not _are_dated(records):
        return None
    return {"resourceLogs": [_resource_logs(group) for group in groups]}


def _parsed(request: _RequestT, value: bytes) -> _RequestT | None:
    """The request, or None if the bytes are none or hold more than one."""
    try:
        request.ParseFromString(value)
    except DecodeError:
        return None
    return None if len(UnknownFieldSet(request)) else request


def _fit(messages: Iterable[Message]) -> bool:
    """Whether no message has a known field in another form. A number that is not known is a newer version's."""
    for message in messages:
        unknown = UnknownFieldSet(message)
        if any(unknown[index].field_number in message.DESCRIPTOR.fields_by_number for index in range(len(unknown))):
            return False
    return True


def _are_begun(spans: list[Span]) -> bool:
    """Whether there are spans, and all have a time, and ids as they must. The names of metrics may be as long."""
    return bool(spans) and all(
        span.start_time_unix_nano
        and len(span.trace_id) == _TRACE_ID_BYTES
        and len(span.span_id) == _SPAN_ID_BYTES
        and len(span.parent_span_id) in (0, _SPAN_ID_BYTES)
        for span in spans
    )


def _are_dated(records: list[LogRecord]) -> bool:
    """Whether there are log records, all have a time, and ids as they must if they have any."""
    return bool(records) and all(
        (record.time_unix_nano or record.observed_time_unix_nano)
        and len(record.trace_id) in (0, _TRACE_ID_BYTES)
        and len(record.span_id) in (0, _SPAN_ID_BYTES)
        for record in records
    )


def _resource_spans(group: ResourceSpans) -> JsonValue:
    scopes: list[JsonValue] = [
        {"scope": _scope(scope.scope), "spans": [_span(span) for span in scope.spans]} for scope in group.scope_spans
    ]
    return {"resource": _resource(group.resource), "scopeSpans": scopes}


def _resource_logs(group: ResourceLogs) -> JsonValue:
    scopes: list[JsonValue] = [
        {"scope": _scope(scope.scope), "logRecords": [_record(record) for record in scope.log_records]}
        for scope in group.scope_logs
    ]
    return {"resource": _resource(group.resource), "scopeLogs": scopes}


def _span(span: Span) -> JsonValue:
    events: list[JsonValue] = [
        {"name": event.name, "timeUnixNano": str(event.time_unix_nano), "attributes": _attributes(event.attributes)}
        for event in span.events
    ]
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "flags": span.flags,
        "name": span.name,
        "startTimeUnixNano": str(span.start_time_unix_nano),
        "endTimeUnixNano": str(span.end_time_unix_nano),
        "attributes": _attributes(span.attributes),
        "events": events,
        "status": {"code": int(span.status.code)},
    }


def _record(record: LogRecord) -> JsonValue:
    return {
        "traceId": record.trace_id.hex(),
        "spanId": record.span_id.hex(),
        "timeUnixNano": str(record.time_unix_nano),
        "observedTimeUnixNano": str(record.observed_time_unix_nano),
        "eventName": record.event_name,
        "body": _any_value(record.body),
        "attributes": _attributes(record.attributes),
    }


def _resource(resource: Resource) -> JsonValue:
    return {"attributes": _attributes(resource.attributes)}


def _scope(scope: InstrumentationScope) -> JsonValue:
    return {"name": scope.name, "version": scope.version}


def _attributes(pairs: Iterable[KeyValue]) -> JsonValue:
    return [{"key": pair.key, "value": _any_value(pair.value)} for pair in pairs]


def _any_value(value: AnyValue) -> JsonValue:
    """The value in the JSON form of the specification. How deep it goes is bounded by the protobuf parser."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return {"stringValue": value.string_value}
    if kind == "int_value":
        return {"intValue": str(value.int_value)}
    if kind == "double_value":
        return {"doubleValue": value.double_value}
    if kind == "bool_value":
        return {"boolValue": value.bool_value}
    if kind == "array_value":
        return {"arrayValue": {"values": [_any_value(one) for one in value.array_value.values]}}
    if kind == "kvlist_value":
        return {"kvlistValue": {"values": _attributes(value.kvlist_value.values)}}
    return {"bytesValue": base64.b64encode(value.bytes_value).decode()} if kind == "bytes_value" else {}
