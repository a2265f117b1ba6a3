"""Opik's traces and spans: as its clients post them, as its API lists them, and as its export writes them to files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.timestamps import epoch_ns
from schemas.traces.contents import with_contents
from schemas.traces.piece import pieces_of
from schemas.traces.step import Step, StepKind
from schemas.values import as_identifier, as_object, as_parsed, as_text

SYSTEM = "opik"
"""Whose trace ids these are."""

# A function that was tracked without a type is general.
_KINDS = {
    "general": StepKind.CHAIN,
    "llm": StepKind.LLM,
    "tool": StepKind.OTHER,
    "guardrail": StepKind.OTHER,
}
_BESIDE_SPAN = ("project_name", "project_id", "parent_span_id", "source", "last_updated_at")
_BATCHES = ("traces", "spans")
_PAGE = {"page", "size", "total", "content"}
_EXPORTED = {"trace", "spans"}
# All that a client posts of a trace, and what the API adds.
_TRACE_FIELDS = {
    *("id", "project_name", "project_id", "name", "start_time", "end_time", "input", "output", "metadata", "tags"),
    *("error_info", "last_updated_at", "ttft", "thread_id", "source", "environment", "usage", "created_at"),
    *("created_by", "last_updated_by", "feedback_scores", "span_feedback_scores", "comments", "duration"),
    *("guardrails_validations", "total_estimated_cost", "span_count", "visibility_mode", "llm_span_count"),
    *("has_tool_spans", "providers", "experiment", "annotation_queues", "workspace_name"),
}
_ID_VERSION = 7


@dataclass(frozen=True, slots=True)
class OpikAdapter:
    """Reads batches and pages of traces or of spans, single ones, and a trace together with its spans."""

    name: str = "opik"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a trace or a span, or holds such and nothing else."""
        held = _held(row)
        return bool(held) and all(_is_span(one) or _is_trace(one) for one in held)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give a piece for each trace. Raises UnusablePayload (wrong_shape)."""
        return pieces_of(SYSTEM, _steps(row), self.name) or (SkipReason.NOT_RAG,)


def _held(row: JsonObject) -> list[JsonValue]:
    """The traces and spans in a row: itself, if it is no batch."""
    if row.keys() >= _EXPORTED and isinstance(row["spans"], list):
        return [row["trace"], *row["spans"]]
    batches = [row[name] for name in _BATCHES if name in row] if row.keys() <= {*_BATCHES} else []
    if row.keys() >= _PAGE:
        batches = [row["content"]]
    if not batches:
        return [row]
    return [one for batch in batches if isinstance(batch, list) for one in batch]


def _is_span(row: JsonValue) -> bool:
    return (
        isinstance(row, dict)
        and str(row.get("type")) in _KINDS
        and {"id", "trace_id", "start_time"} <= row.keys()
        and any(name in row for name in _BESIDE_SPAN)
    )


def _is_trace(row: JsonValue) -> bool:
    if not isinstance(row, dict) or not {"id", "start_time"} <= row.keys() <= _TRACE_FIELDS:
        return False
    return ("project_name" in row or "project_id" in row) and _is_own_id(row["id"])


def _is_own_id(logged: JsonValue) -> bool:
    """Whether an id is of the only version that the service takes."""
    try:
        return UUID(str(logged)).version == _ID_VERSION
    except ValueError:
        return False


def _steps(row: JsonObject) -> Iterator[tuple[str, Step]]:
    for one in _held(row):
        if isinstance(one, dict):
            yield _step(one, is_trace=not _is_span(one))


def _step(body: JsonObject, *, is_trace: bool) -> tuple[str, Step]:
    """A trace is the step above its spans. It is posted when it begins, and again when it is over."""
    own_id = as_identifier(body.get("id"))
    trace_id = own_id if is_trace else as_identifier(body.get("trace_id"))
    if own_id is None or trace_id is None:
        raise wrong_shape(f"opik.{'id' if own_id is None else 'trace_id'}", "missing")
    begun_ns, ended_ns = epoch_ns(body.get("start_time")), epoch_ns(body.get("end_time"))
    given, gave = as_parsed(body.get("input")), as_parsed(body.get("output"))
    is_empty = is_trace and given is None and gave is None
    changed_ns = epoch_ns(body.get("last_updated_at")) or ended_ns or begun_ns or 0
    step = Step(
        id=own_id,
        order=(0 if ended_ns is None else 1, changed_ns),
        parent=None if is_trace else as_identifier(body.get("parent_span_id")) or trace_id,
        is_root=is_trace,
        # A trace without contents of its own only connects what lies below it.
        kind=None if is_empty else StepKind.CHAIN if is_trace else _KINDS[str(body.get("type"))],
        begun_ns=begun_ns,
        ended_ns=ended_ns,
        has_failed=None if ended_ns is None else bool(body.get("error_info")),
        app=as_text(body.get("project_name")),
        model=as_text(body.get("model")),
        metadata=_metadata(body) if is_trace else {},
    )
    return trace_id, step if is_empty else with_contents(step, given, gave, name=as_text(body.get("name")))


def _metadata(body: JsonObject) -> JsonObject:
    """Session, tags, and what else the program has said of the trace."""
    said: JsonObject = {
        **(as_object(as_parsed(body.get("metadata"))) or {}),
        "session": body.get("thread_id"),
        "tags": body.get("tags") or None,
        "project_id": body.get("project_id"),
        "environment": body.get("environment"),
    }
    return {name: value for name, value in said.items() if value is not None}
