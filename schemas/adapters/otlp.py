"""OpenTelemetry's traces and logs: pieces of traces, by trace id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from schemas.adapters.adapter import Finding
from schemas.adapters.otlp_json import RESOURCE_LOGS, RESOURCE_SPANS, is_span, records_of, span_of, spans_of
from schemas.envelope import JsonObject
from schemas.headers import Headers
from schemas.skip_reason import SkipReason
from schemas.traces.conventions import step_of_record, step_of_span
from schemas.traces.piece import pieces_of
from schemas.traces.step import Step

SYSTEM = "otlp"
"""Whose trace ids these are, whichever convention the attributes follow."""

# A list of one's own, and a page of Phoenix's API.
_LISTS = ("spans", "data")


@dataclass(frozen=True, slots=True)
class OtlpAdapter:
    """Reads requests to export traces or logs, a list of spans alone, and a single span."""

    name: str = "otlp"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row has the outer field of a request, or spans with ids and times as OTLP has them."""
        return any(name in row for name in (*RESOURCE_SPANS, *RESOURCE_LOGS)) or bool(_bare_spans(row))

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give a piece for each trace, or not_rag if there is none. Raises UnusablePayload (wrong_shape)."""
        return pieces_of(SYSTEM, _steps(row), self.name) or (SkipReason.NOT_RAG,)


def _steps(row: JsonObject) -> Iterator[tuple[str, Step]]:
    for span in spans_of(row):
        yield span.trace_id, step_of_span(span)
    for logged in _bare_spans(row):
        span = span_of(logged, {}, "")
        yield span.trace_id, step_of_span(span)
    for record in records_of(row):
        step = step_of_record(record)
        if step is not None:
            yield record.trace_id, step


def _bare_spans(row: JsonObject) -> list[JsonObject]:
    """Spans without a request around them: none unless all are spans."""
    lists = (row[name] for name in _LISTS if isinstance(row.get(name), list))
    listed = next(lists, None)
    rows = listed if isinstance(listed, list) else [row]
    spans = [one for one in rows if isinstance(one, dict) and is_span(one)]
    return spans if len(spans) == len(rows) else []
