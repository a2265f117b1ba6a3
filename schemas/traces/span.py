"""A span of OpenTelemetry as it was logged, before anything is made of its attributes."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.envelope import JsonObject

# The parent's context is known to be, or not to be, another process's; and it is.
_HAS_IS_REMOTE = 0x100
_IS_REMOTE = 0x200


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened in a span."""

    name: str
    attributes: JsonObject


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Ids are lower-case hexadecimal, times are nanoseconds since the epoch; None: not logged, not over.

    ``attributes`` have the names of the log; dots in them are not taken apart. ``resource`` are the attributes of what
    made the span, ``scope`` is the library that did.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    begun_ns: int | None
    ended_ns: int | None
    flags: int | None
    has_failed: bool
    attributes: JsonObject
    resource: JsonObject
    scope: str
    events: tuple[SpanEvent, ...] = ()

    @property
    def is_root(self) -> bool:
        """Whether nothing of this process lies above: no parent, or one in another process."""
        remote = _HAS_IS_REMOTE | _IS_REMOTE
        return self.parent_id is None or (self.flags or 0) & remote == remote

    @property
    def order(self) -> tuple[int, int]:
        """What grows from report to report of the span, as ``Step.order`` has it."""
        return (0, self.begun_ns or 0) if self.ended_ns is None else (1, self.ended_ns)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of the logs signal. ``name`` is the event's, empty if it is a plain line. Ids as in ``Span``."""

    trace_id: str
    span_id: str | None
    name: str
    logged_ns: int | None
    body: JsonValue
    attributes: JsonObject
    resource: JsonObject
    scope: str
