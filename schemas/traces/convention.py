"""The seam for conventions: under which names the attributes of a span say what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from schemas.payload import JsonObject
from schemas.traces.span import LogRecord, Span
from schemas.traces.step import Step, StepKind
from schemas.values import as_text

# What a library names a service that nobody named.
_UNNAMED = "unknown_service"


class Convention(Protocol):
    """Reads the spans of one convention. To add one, write it and list it in ``CONVENTIONS``."""

    @property
    def name(self) -> str:
        """One fixed word."""

    def matches(self, span: Span) -> bool:
        """Whether the span follows the convention. The first that says so gets the span."""

    def step(self, span: Span) -> Step:
        """Say what the span did. Never raises: what cannot be read is left out. ``bare_step`` is where to begin."""


class LogConvention(Protocol):
    """Reads the log records of one convention. To add one, write it and list it in ``LOG_CONVENTIONS``."""

    @property
    def name(self) -> str:
        """One fixed word."""

    def matches(self, record: LogRecord) -> bool:
        """Whether the record says something of a step; others are left aside."""

    def step(self, record: LogRecord) -> Step | None:
        """Say what the record tells of its span, under the span's id: it is merged with the span's own report."""


def bare_step(span: Span) -> Step:
    """Return a span of no known convention: it connects those above it with those below."""
    return Step(
        id=span.span_id,
        order=span.order,
        parent=span.parent_id,
        is_root=span.is_root,
        kind=StepKind.OTHER,
        begun_ns=span.begun_ns,
        ended_ns=span.ended_ns,
        has_failed=span.has_failed,
        app=service_name(span.resource),
    )


def service_name(resource: JsonObject) -> str | None:
    """Return the service that a person named."""
    name = as_text(resource.get("service.name"))
    return None if name is None or name.startswith(_UNNAMED) else name


# What is the same whatever a step does; the rest is only understood together with its kind.
_OF_ANY_KIND = ("app", "model")
_OF_ITS_KIND = ("question", "answer", "thoughts", "documents", "context", "prompt")


def completed(readings: Sequence[Step]) -> Step:
    """Return one step of what several conventions read in a span, at least one; the first that says a thing counts.

    A convention that sees another kind of step adds nothing to what was said and found.
    """
    step = readings[0]
    for other in readings[1:]:
        step = _filled(step, other)
    return step


def _filled(step: Step, other: Step) -> Step:
    kind = other.kind if step.kind in {None, StepKind.OTHER} else step.kind
    names = (*_OF_ANY_KIND, *(_OF_ITS_KIND if other.kind is kind else ()))
    filled = {name: getattr(other, name) for name in names if not getattr(step, name)}
    return step.model_copy(
        update={
            **filled,
            "kind": kind,
            "is_root": step.is_root or other.is_root,
            "metadata": {**other.metadata, **step.metadata},
        }
    )
