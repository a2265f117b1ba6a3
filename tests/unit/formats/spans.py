"""Spans for tests of conventions."""

from __future__ import annotations

import orjson
from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.conventions import step_of_span
from schemas.traces.span import Span, SpanEvent
from schemas.traces.step import Step

DOCUMENTS: list[JsonValue] = [
    {
        "id": "d-1",
        "page_content": "Open until 6.",
        "metadata": {"source": "hours.md", "score": 0.7},
        "type": "Document",
    },
    {"id": "d-2", "page_content": "Closed on Sundays.", "metadata": {"score": 0.2}, "type": "Document"},
]
FOUND = [("d-1", "Open until 6.", 0.7), ("d-2", "Closed on Sundays.", 0.2)]


def text(value: JsonValue) -> str:
    """JSON in a string, as attributes hold it."""
    return orjson.dumps(value).decode()


def span(
    attributes: JsonObject,
    *,
    events: tuple[tuple[str, JsonObject], ...] = (),
    parent: str | None = "b" * 16,
    resource: JsonObject | None = None,
    name: str = "span",
) -> Span:
    return Span(
        trace_id="c" * 32,
        span_id="a" * 16,
        parent_id=parent,
        name=name,
        begun_ns=1_800_000_000_000_000_000,
        ended_ns=1_800_000_000_500_000_000,
        flags=None,
        has_failed=False,
        attributes=attributes,
        resource={"service.name": "desk"} if resource is None else resource,
        scope="scope",
        events=tuple(SpanEvent(event, facts) for event, facts in events),
    )


def step(
    attributes: JsonObject,
    *,
    events: tuple[tuple[str, JsonObject], ...] = (),
    parent: str | None = "b" * 16,
    resource: JsonObject | None = None,
    name: str = "span",
) -> Step:
    return step_of_span(span(attributes, events=events, parent=parent, resource=resource, name=name))


def found(of: Step) -> list[tuple[str | None, str | None, float | None]] | None:
    """Ids, texts and scores of the documents."""
    return None if of.documents is None else [(one.id, one.text, one.score) for one in of.documents]
