"""Events of TruLens: the rows of its table, which hold one span each, or of Snowflake's table of events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.timestamps import epoch_ns
from schemas.traces.conventions import step_of_span
from schemas.traces.conventions.trulens import PREFIX
from schemas.traces.piece import pieces_of
from schemas.traces.span import Span
from schemas.values import as_identifier, as_object, as_parsed, as_text

SYSTEM = "trulens"
"""Whose trace ids these are: numbers, unlike those of OTLP."""

_ATTRIBUTES = "record_attributes"
_ERROR = "STATUS_CODE_ERROR"


@dataclass(frozen=True, slots=True)
class TruLensAdapter:
    """Reads one event. Columns with objects may hold these as JSON in a string; Snowflake has its names in capitals."""

    name: str = "trulens"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a span with attributes of TruLens."""
        attributes = _object(_lowered(row), _ATTRIBUTES)
        return any(name.startswith(PREFIX) for name in attributes)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the span as a piece of its trace. Raises UnusablePayload (wrong_shape) if it names no trace."""
        span = _span(_lowered(row))
        return pieces_of(SYSTEM, [(span.trace_id, step_of_span(span))], self.name)


def _lowered(row: JsonObject) -> JsonObject:
    return {name.lower() if name.isupper() else name: value for name, value in row.items()}


def _object(row: JsonObject, column: str) -> JsonObject:
    return as_object(as_parsed(row.get(column))) or {}


def _span(row: JsonObject) -> Span:
    trace, record = _object(row, "trace"), _object(row, "record")
    trace_id, span_id = as_identifier(trace.get("trace_id")), as_identifier(trace.get("span_id"))
    if trace_id is None or span_id is None:
        raise wrong_shape(f"trulens.trace.{'trace_id' if trace_id is None else 'span_id'}", "missing")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=as_identifier(trace.get("parent_id")) or as_identifier(record.get("parent_span_id")),
        name=as_text(record.get("name")) or "",
        begun_ns=epoch_ns(row.get("start_timestamp")),
        ended_ns=epoch_ns(row.get("timestamp")),
        flags=None,
        has_failed=record.get("status") == _ERROR,
        attributes=_object(row, _ATTRIBUTES),
        resource=_object(row, "resource_attributes"),
        scope="",
    )
