"""Spans and log records out of the JSON form of OTLP, as collectors and protobuf's own writer spell it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from pydantic import JsonValue

from schemas.adapters.fields import wrong_shape
from schemas.envelope import JsonObject
from schemas.traces.span import LogRecord, Span, SpanEvent
from schemas.values import as_number, as_text

RESOURCE_SPANS = ("resourceSpans", "resource_spans")
RESOURCE_LOGS = ("resourceLogs", "resource_logs")

# The older names are those before OTLP 0.15 and 0.19.
_SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SCOPE_LOGS = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs")
_SCOPE = ("scope", "instrumentationLibrary")
_RECORDS = ("logRecords", "log_records", "logs")
_TRACE_ID = ("traceId", "trace_id")
_SPAN_ID = ("spanId", "span_id")
_PARENT_ID = ("parentSpanId", "parent_span_id")
_BEGUN = ("startTimeUnixNano", "start_time_unix_nano")
_ENDED = ("endTimeUnixNano", "end_time_unix_nano")
_LOGGED = ("timeUnixNano", "time_unix_nano")
_OBSERVED = ("observedTimeUnixNano", "observed_time_unix_nano")

_TRACE_ID_BYTES = 16
_SPAN_ID_BYTES = 8
_DIGITS = re.compile(r"[0-9]{1,19}")
_MAX_NS = 2**63 - 1
_ERRORS = (2, "2", "STATUS_CODE_ERROR")


def spans_of(request: JsonObject) -> Iterator[Span]:
    """Give the spans of a request to export traces, in order. Raises UnusablePayload (wrong_shape)."""
    for group in _objects(request, RESOURCE_SPANS):
        resource = _resource(group)
        for scope in _objects(group, _SCOPE_SPANS):
            for span in _objects(scope, ("spans",)):
                yield span_of(span, resource, _scope_name(scope))


def records_of(request: JsonObject) -> Iterator[LogRecord]:
    """Give the log records that belong to a trace, in order. Raises UnusablePayload (wrong_shape)."""
    for group in _objects(request, RESOURCE_LOGS):
        resource = _resource(group)
        for scope in _objects(group, _SCOPE_LOGS):
            for record in _objects(scope, _RECORDS):
                if _given(record, _TRACE_ID):
                    yield _record_of(record, resource, _scope_name(scope))


def is_span(value: JsonValue) -> bool:
    """Whether a value is a span by itself: ids of the right size, and a time in nanoseconds."""
    if not isinstance(value, dict) or _given(value, _BEGUN) is None:
        return False
    trace_id, span_id = _given(value, _TRACE_ID), _given(value, _SPAN_ID)
    return _hexadecimal(trace_id, _TRACE_ID_BYTES) is not None and _hexadecimal(span_id, _SPAN_ID_BYTES) is not None


def span_of(span: JsonObject, resource: JsonObject, scope: str) -> Span:
    """Read one span. Raises UnusablePayload (wrong_shape)."""
    status = span.get("status")
    parent = _given(span, _PARENT_ID)
    return Span(
        trace_id=_id(span, _TRACE_ID, _TRACE_ID_BYTES),
        span_id=_id(span, _SPAN_ID, _SPAN_ID_BYTES),
        parent_id=_id(span, _PARENT_ID, _SPAN_ID_BYTES) if parent is not None and _is_set(parent) else None,
        name=as_text(span.get("name")) or "",
        begun_ns=_nanoseconds(_given(span, _BEGUN)),
        ended_ns=_nanoseconds(_given(span, _ENDED)),
        flags=int(as_number(span.get("flags")) or 0) or None,
        has_failed=isinstance(status, dict) and status.get("code") in _ERRORS,
        attributes=attributes_of(span.get("attributes")),
        resource=resource,
        scope=scope,
        events=tuple(
            SpanEvent(as_text(event.get("name")) or "", attributes_of(event.get("attributes")))
            for event in _objects(span, ("events",))
        ),
    )


def attributes_of(pairs: JsonValue) -> JsonObject:
    """Return a list of keys and values as an object. Of a key that comes twice the last counts."""
    if isinstance(pairs, dict):
        return pairs
    given = [pair for pair in pairs if isinstance(pair, dict)] if isinstance(pairs, list) else []
    return {key: value_of(pair.get("value")) for pair in given if isinstance(key := pair.get("key"), str)}


def value_of(value: JsonValue) -> JsonValue:
    """Return what an AnyValue holds: integers as such, bytes as base64. Parsing has bounded how deep it goes."""
    if not isinstance(value, dict) or not value:
        return None
    kind, held = next(iter(value.items()))
    kind = kind.replace("_v", "V")
    if kind == "intValue":
        return _integer(held)
    if kind == "arrayValue":
        return [value_of(one) for one in _values(held)]
    if kind == "kvlistValue":
        return attributes_of(_values(held))
    return held if kind in ("stringValue", "doubleValue", "boolValue", "bytesValue") else None


def _record_of(record: JsonObject, resource: JsonObject, scope: str) -> LogRecord:
    span_id = _given(record, _SPAN_ID)
    attributes = attributes_of(record.get("attributes"))
    name = _given(record, ("eventName", "event_name")) or attributes.get("event.name")
    return LogRecord(
        trace_id=_id(record, _TRACE_ID, _TRACE_ID_BYTES),
        span_id=_id(record, _SPAN_ID, _SPAN_ID_BYTES) if span_id else None,
        name=as_text(name) or "",
        logged_ns=_nanoseconds(_given(record, _LOGGED)) or _nanoseconds(_given(record, _OBSERVED)),
        body=value_of(record.get("body")),
        attributes=attributes,
        resource=resource,
        scope=scope,
    )


def _resource(group: JsonObject) -> JsonObject:
    resource = group.get("resource")
    return attributes_of(resource.get("attributes")) if isinstance(resource, dict) else {}


def _scope_name(scope: JsonObject) -> str:
    described = _given(scope, _SCOPE)
    return (as_text(described.get("name")) or "") if isinstance(described, dict) else ""


def _values(held: JsonValue) -> list[JsonValue]:
    values = held.get("values") if isinstance(held, dict) else None
    return values if isinstance(values, list) else []


def _integer(held: JsonValue) -> JsonValue:
    """JSON writes 64 bits as a string; a whole number is a number, whoever wrote it."""
    if isinstance(held, str):
        return int(held) if _DIGITS.fullmatch(held.removeprefix("-")) else None
    return held if isinstance(held, int | float) else None


def _objects(holder: JsonObject, names: tuple[str, ...]) -> Iterator[JsonObject]:
    """The objects of a list that may be missing."""
    held = _given(holder, names)
    if held is None:
        return
    if not isinstance(held, list):
        raise wrong_shape(names[0], "must be a list")
    for index, one in enumerate(held):
        if not isinstance(one, dict):
            raise wrong_shape(f"{names[0]}.{index}", "must be an object")
        yield one


def _given(holder: JsonObject, names: tuple[str, ...]) -> JsonValue:
    return next((holder[name] for name in names if holder.get(name) is not None), None)


def _id(holder: JsonObject, names: tuple[str, ...], size: int) -> str:
    found = _hexadecimal(_given(holder, names), size)
    if found is None:
        raise wrong_shape(names[0], f"must be {size} bytes in hexadecimal, not all of them zero")
    return found


def _hexadecimal(value: JsonValue, size: int) -> str | None:
    """An id in lower case, of hexadecimal or of the base64 that protobuf's own writer makes of it. Zeros are no id."""
    if not isinstance(value, str):
        return None
    try:
        held = bytes.fromhex(value) if len(value) == 2 * size else base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return held.hex() if len(held) == size and any(held) else None


def _is_set(parent: JsonValue) -> bool:
    """Whether a parent is named: none is written as nothing, and by some as zeros."""
    return not isinstance(parent, str) or bool(parent.strip("0"))


def _nanoseconds(value: JsonValue) -> int | None:
    """A time, or None for what is no time; zero is what protobuf has for none."""
    if isinstance(value, str):
        value = int(value) if _DIGITS.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value <= _MAX_NS else None
