"""The conventions that are known.

A new one is one more file here and one more entry in ``CONVENTIONS`` or ``LOG_CONVENTIONS``, before the general ones.
"""

from __future__ import annotations

from schemas.traces.convention import Convention, LogConvention, bare_step
from schemas.traces.conventions.openinference import OpenInference
from schemas.traces.span import LogRecord, Span
from schemas.traces.step import Step

CONVENTIONS: tuple[Convention, ...] = (OpenInference(),)
LOG_CONVENTIONS: tuple[LogConvention, ...] = ()


def step_of_span(span: Span) -> Step:
    """Return what the span did, by the first convention that it follows."""
    for convention in CONVENTIONS:
        if convention.matches(span):
            return convention.step(span)
    return bare_step(span)


def step_of_record(record: LogRecord) -> Step | None:
    """Return what the record tells of its span, or None if it follows no convention."""
    for convention in LOG_CONVENTIONS:
        if convention.matches(record):
            return convention.step(record)
    return None
