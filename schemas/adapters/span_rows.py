"""Spans of OpenTelemetry as rows: what Phoenix and Arize give out of their stores, and what the SDK prints of a span.

The ids are OpenTelemetry's, so that these are traces of OTLP that were logged in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.adapters.otlp import SYSTEM
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.timestamps import epoch_ns
from schemas.traces.conventions import step_of_span
from schemas.traces.piece import pieces_of
from schemas.traces.span import Span, SpanEvent
from schemas.values import as_identifier, as_object, as_parsed, as_text

_CONTEXT = "context"
_ATTRIBUTES = "attributes"
_KIND = "openinference.span.kind"
_PROJECT = "openinference.project.name"
_PAGE = {"data", "next_cursor"}
_HEXADECIMAL = "0x"
_FAILED = "ERROR"
# Objects whose fields a program names; the convention takes them whole.
_WHOLE = ("metadata", "llm.prompt_template.variables")
_MAX_LEVELS = 8


@dataclass(frozen=True, slots=True)
class PhoenixAdapter:
    """Reads spans of Phoenix's API, also a page of them, and rows of its and Arize's dataframes.

    Attributes may be nested, dotted, or columns of their own.
    """

    name: str = "phoenix"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a span with a kind of OpenInference, or a page of such."""
        spans = _page(row)
        return bool(spans) and all(isinstance(span, dict) and _is_stored(span) for span in spans)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give a piece for each trace. Raises UnusablePayload (wrong_shape)."""
        spans = (_span(span) for span in _page(row) if isinstance(span, dict))
        return pieces_of(SYSTEM, ((span.trace_id, step_of_span(span)) for span in spans), self.name)


@dataclass(frozen=True, slots=True)
class OtelSpanAdapter:
    """Reads single spans as the SDKs of OpenTelemetry print them (``ReadableSpan.to_json``)."""

    name: str = "otel_span"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a span with its context and the resource that made it."""
        return str(row.get("kind")).startswith("SpanKind.") and isinstance(row.get(_CONTEXT), dict)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the span as a piece. Raises UnusablePayload (wrong_shape)."""
        span = _span(row)
        return pieces_of(SYSTEM, [(span.trace_id, step_of_span(span))], self.name)


def _page(row: JsonObject) -> list[JsonValue]:
    data = row.get("data")
    return data if isinstance(data, list) and row.keys() <= _PAGE else [row]


def _is_stored(row: JsonObject) -> bool:
    if not all(as_identifier(_of_context(row, name)) for name in ("trace_id", "span_id")):
        return False
    return "span_kind" in row or f"{_ATTRIBUTES}.{_KIND}" in row


def _of_context(row: JsonObject, name: str) -> JsonValue:
    context = as_object(row.get(_CONTEXT)) or {}
    return context.get(name) or row.get(f"{_CONTEXT}.{name}")


def _span(row: JsonObject) -> Span:
    ids = {name: _id(_of_context(row, name)) for name in ("trace_id", "span_id")}
    for name, known in ids.items():
        if known is None:
            raise wrong_shape(f"{_CONTEXT}.{name}", "missing")
    status = row.get("status_code") or (as_object(row.get("status")) or {}).get("status_code")
    project = as_text(row.get("project_name"))
    resource = as_object((as_object(row.get("resource")) or {}).get(_ATTRIBUTES)) or {}
    return Span(
        trace_id=str(ids["trace_id"]),
        span_id=str(ids["span_id"]),
        parent_id=_id(row.get("parent_id")),
        name=as_text(row.get("name")) or "",
        begun_ns=epoch_ns(row.get("start_time")),
        ended_ns=epoch_ns(row.get("end_time")),
        flags=None,
        has_failed=str(status).upper() == _FAILED,
        attributes=_attributes(row),
        resource={**resource, _PROJECT: project} if project else resource,
        scope="",
        events=tuple(_events(as_parsed(row.get("events")))),
    )


def _id(logged: JsonValue) -> str | None:
    """An id in hexadecimal, which the SDK of Python begins with 0x."""
    known = as_identifier(logged)
    return known.lower().removeprefix(_HEXADECIMAL) if known else None


def _attributes(row: JsonObject) -> JsonObject:
    """The attributes under their dotted names. Phoenix tells the kind apart from them."""
    whole = as_object(as_parsed(row.get(_ATTRIBUTES))) or {}
    before = f"{_ATTRIBUTES}."
    columns = {name.removeprefix(before): value for name, value in row.items() if name.startswith(before)}
    dotted = dict(_dotted({**whole, **columns}, "", _MAX_LEVELS))
    kind = as_text(row.get("span_kind"))
    return {_KIND: kind, **dotted} if kind and kind != "UNKNOWN" else dotted


def _dotted(fields: JsonObject, before: str, levels: int) -> Iterator[tuple[str, JsonValue]]:
    for key, value in fields.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and levels and name not in _WHOLE:
            yield from _dotted(value, f"{name}.", levels - 1)
        elif value is not None:
            yield name, value


def _events(logged: JsonValue) -> Iterator[SpanEvent]:
    for event in logged if isinstance(logged, list) else ():
        if isinstance(event, dict):
            yield SpanEvent(as_text(event.get("name")) or "", as_object(event.get(_ATTRIBUTES)) or {})
