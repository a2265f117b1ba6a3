"""Langfuse before it took OpenTelemetry: events as its clients sent them, and rows of its exports and its API.

An event or a row says something of a trace or of an observation in it. Names are in camel case on the wire and in the
API, in snake case in exports to files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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

SYSTEM = "langfuse"
"""Whose trace ids these are."""

_TRACE_EVENT = "trace-create"
# What is not known to be anything else holds other steps, if it does not turn out to retrieve.
_KINDS = {
    "span": StepKind.CHAIN,
    "chain": StepKind.CHAIN,
    "agent": StepKind.CHAIN,
    "generation": StepKind.LLM,
    "retriever": StepKind.RETRIEVER,
    "event": StepKind.OTHER,
    "tool": StepKind.OTHER,
    "embedding": StepKind.OTHER,
    "evaluator": StepKind.OTHER,
    "guardrail": StepKind.OTHER,
}
_OBSERVATION = "observation"
_WAYS = ("-create", "-update")
_STEP_EVENTS = {f"{kind}{way}" for kind in (*_KINDS, _OBSERVATION) for way in _WAYS}
_EVENTS = {_TRACE_EVENT, *_STEP_EVENTS, "score-create", "sdk-log", "dataset-run-item-create"}
_PARENTS = ("parent_observation_id", "parentObservationId")
# Of a trace as a row, beside its input and output.
_TRACE_MARKS = ({"bookmarked", "public"}, {"htmlPath"}, {"observations", "scores"})
_FAILED = "ERROR"


@dataclass(frozen=True, slots=True)
class LangfuseAdapter:
    """Reads batches of events and single events, rows of traces, with their observations or without, and of these."""

    name: str = "langfuse"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is an event or a batch of such, an observation, or a trace."""
        batch = row.get("batch")
        if isinstance(batch, list):
            return bool(batch) and all(isinstance(event, dict) and _is_event(event) for event in batch)
        return _is_event(row) or _is_observation(row) or _is_trace(row)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give a piece for each trace, or not_rag if there is none. Raises UnusablePayload (wrong_shape)."""
        return pieces_of(SYSTEM, _steps(row), self.name) or (SkipReason.NOT_RAG,)


def _is_event(row: JsonObject) -> bool:
    return str(row.get("type")) in _EVENTS and isinstance(row.get("body"), dict | str) and "timestamp" in row


def _is_observation(row: JsonValue) -> bool:
    return (
        isinstance(row, dict)
        and str(row.get("type")).lower() in _KINDS
        and any(name in row for name in _PARENTS)
        and any(name in row for name in ("trace_id", "traceId"))
    )


def _is_trace(row: JsonObject) -> bool:
    return {"id", "timestamp", "input", "output"} <= row.keys() and any(marks <= row.keys() for marks in _TRACE_MARKS)


def _steps(row: JsonObject) -> Iterator[tuple[str, Step]]:
    if isinstance(row.get("batch"), list) or _is_event(row):
        events = row["batch"] if isinstance(row.get("batch"), list) else [row]
        for event in events if isinstance(events, list) else ():
            if isinstance(event, dict) and str(event.get("type")) in {_TRACE_EVENT, *_STEP_EVENTS}:
                yield _of_event(event)
    elif _is_observation(row):
        yield _of_observation(row)
    else:
        trace_id, trace = _of_trace(row, _first(row, "timestamp"))
        yield trace_id, trace
        observations = row.get("observations")
        for observation in observations if isinstance(observations, list) else ():
            if _is_observation(observation) and isinstance(observation, dict):
                yield trace_id, _of_observation(observation)[1]


def _of_event(event: JsonObject) -> tuple[str, Step]:
    body = as_object(as_parsed(event.get("body"))) or {}
    if event.get("type") == _TRACE_EVENT:
        return _of_trace(body, event.get("timestamp"))
    name, _, way = str(event.get("type")).rpartition("-")
    kind = str(body.get("type")).lower() if name == _OBSERVATION else name
    # A span is known by what it gave, which an update may say: of its kind each report says what it can see.
    known = None if name in ("span", _OBSERVATION) and way == "update" else _KINDS.get(kind, StepKind.OTHER)
    order = (1 if way == "update" or body.get("endTime") else 0, epoch_ns(event.get("timestamp")) or 0)
    # An observation without a parent lies below the trace itself; an update may not repeat its parent.
    return _observed(body, known, order, may_lack_parent=way == "update")


def _of_observation(row: JsonObject) -> tuple[str, Step]:
    ended_ns = epoch_ns(_first(row, "end_time", "endTime"))
    trace_id, step = _observed(row, _KINDS[str(row.get("type")).lower()], (1, ended_ns or 0), may_lack_parent=False)
    if step.parent != trace_id:
        return trace_id, step
    # The uppermost observation is the root, unless it did not hold others but lay beside them.
    metadata = _metadata(row)
    return trace_id, step.model_copy(update={"is_root": step.kind is StepKind.CHAIN, "metadata": metadata})


def _observed(
    body: JsonObject, kind: StepKind | None, order: tuple[int, int], *, may_lack_parent: bool
) -> tuple[str, Step]:
    own_id = as_identifier(body.get("id"))
    if own_id is None:
        raise wrong_shape("langfuse.id", "missing")
    # An observation that names no trace is one by itself.
    trace_id = as_identifier(_first(body, "trace_id", "traceId")) or own_id
    parent = as_identifier(_first(body, *_PARENTS))
    level = body.get("level")
    step = Step(
        id=own_id,
        order=order,
        parent=parent if parent or may_lack_parent or trace_id == own_id else trace_id,
        is_root=None if may_lack_parent else trace_id == own_id,
        kind=kind,
        begun_ns=epoch_ns(_first(body, "start_time", "startTime")),
        ended_ns=epoch_ns(_first(body, "end_time", "endTime")),
        has_failed=None if level is None else level == _FAILED,
        model=as_text(_first(body, "provided_model_name", "providedModelName", "model", "internal_model_id")),
    )
    return trace_id, with_contents(step, *_contents(body), name=as_text(body.get("name")))


def _of_trace(body: JsonObject, timestamp: JsonValue) -> tuple[str, Step]:
    """The trace as the step above all others. It has no end: whatever it says may be said anew."""
    trace_id = as_identifier(body.get("id"))
    if trace_id is None:
        raise wrong_shape("langfuse.id", "missing")
    given, gave = _contents(body)
    step = Step(
        id=trace_id,
        order=(0, epoch_ns(timestamp) or 0),
        is_root=True,
        # One without contents of its own only connects what lies below it.
        kind=None if given is None and gave is None else StepKind.CHAIN,
        begun_ns=epoch_ns(body.get("timestamp")),
        metadata=_metadata(body),
    )
    return trace_id, step if step.kind is None else with_contents(step, given, gave)


def _contents(body: JsonObject) -> tuple[JsonValue, JsonValue]:
    """Input and output. In exports an empty string stands for what was not set."""
    given, gave = (None if body.get(name) == "" else as_parsed(body.get(name)) for name in ("input", "output"))
    return given, gave


def _metadata(body: JsonObject) -> JsonObject:
    """User, session, tags, and what else the program has said of the trace."""
    said: JsonObject = {
        **(as_object(as_parsed(body.get("metadata"))) or {}),
        "user": _first(body, "user_id", "userId"),
        "session": _first(body, "session_id", "sessionId"),
        "tags": body.get("tags") or None,
        "project_id": _first(body, "project_id", "projectId"),
        "environment": body.get("environment"),
        "release": body.get("release"),
    }
    return {name: value for name, value in said.items() if value not in (None, "")}


def _first(body: JsonObject, *names: str) -> JsonValue:
    return next((body[name] for name in names if body.get(name) not in (None, "")), None)
