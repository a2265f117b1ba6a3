"""MLflow's traces: one message holds a whole trace, by itself or as a row of what ``search_traces`` gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.assembly import assemble
from schemas.traces.contents import with_contents
from schemas.traces.step import Step, StepKind
from schemas.values import as_identifier, as_number, as_object, as_parsed, as_text

_KINDS = {
    "CHAIN": StepKind.CHAIN,
    "AGENT": StepKind.CHAIN,
    "WORKFLOW": StepKind.CHAIN,
    "TASK": StepKind.CHAIN,
    # What a function is that was traced without a type.
    "UNKNOWN": StepKind.CHAIN,
    "RETRIEVER": StepKind.RETRIEVER,
    "RERANKER": StepKind.RERANKER,
    "LLM": StepKind.LLM,
    "CHAT_MODEL": StepKind.LLM,
}
_TRACE_IDS = ("trace_id", "request_id")
# Of a row, beside its spans.
_ROW_MARKS = ("trace_metadata", "request_metadata")
_OVER = "OK"
_FAILED = ("STATUS_CODE_ERROR", "ERROR")
_OWN = "mlflow."
_APPS = ("app", "application", "app_name", "service", "service.name")


@dataclass(frozen=True, slots=True)
class _Trace:
    """A trace in either version of the format: its id, what is known of all of it, and its spans."""

    id: str
    info: JsonObject
    spans: list[JsonObject]

    @property
    def is_over(self) -> bool:
        """Whether it ended well; one that says nothing of it is taken to have."""
        state = self.info.get("state") or self.info.get("status")
        return state is None or str(state).rpartition(".")[2] == _OVER

    @property
    def tags(self) -> JsonObject:
        """What was tagged by a person, or by MLflow, whose tags begin with its name."""
        return as_object(as_parsed(self.info.get("tags"))) or {}


@dataclass(frozen=True, slots=True)
class MlflowAdapter:
    """Reads ``Trace.to_json`` of versions 2 and 3, and rows that hold it as a column or have the spans in one."""

    name: str = "mlflow"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a trace or holds one."""
        return _whole(row) is not None or (
            isinstance(as_parsed(row.get("spans")), list) and any(name in row for name in _ROW_MARKS)
        )

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchanges of the trace, or why it has none. Raises UnusablePayload (wrong_shape).

        The previews and the columns of request and response are not read: they are cut, or say less.
        """
        trace = _trace(row)
        if not trace.is_over:
            return (SkipReason.NO_ANSWER,)
        assembly = assemble((_step(span, trace) for span in trace.spans), trace.id)
        if assembly.reason is not None:
            return (assembly.reason,)
        requested = trace.info.get("request_time") or trace.info.get("timestamp_ms")
        return [{**one, "occurred_at": one.get("occurred_at") or requested} for one in assembly.exchanges]


def _whole(row: JsonObject) -> JsonObject | None:
    """The trace that the row is, or has as a column."""
    for candidate in (row, as_parsed(row.get("trace"))):
        if not isinstance(candidate, dict):
            continue
        info, data = candidate.get("info"), candidate.get("data")
        if isinstance(info, dict) and isinstance(data, dict) and "spans" in data and any(n in info for n in _TRACE_IDS):
            return candidate
    return None


def _trace(row: JsonObject) -> _Trace:
    whole = _whole(row)
    info = row if whole is None else as_object(whole.get("info")) or {}
    spans = as_parsed(row.get("spans")) if whole is None else (as_object(whole.get("data")) or {}).get("spans")
    trace_id = next((own for name in _TRACE_IDS if (own := as_identifier(info.get(name))) is not None), None)
    if trace_id is None:
        raise wrong_shape("mlflow.trace_id", "missing")
    if not isinstance(spans, list):
        raise wrong_shape("mlflow.spans", "must be a list")
    return _Trace(trace_id, info, [span for span in spans if isinstance(span, dict)])


def _step(span: JsonObject, trace: _Trace) -> Step:
    """One span. Each attribute is JSON in a string, whatever it is."""
    context = as_object(span.get("context")) or span
    own_id = as_identifier(context.get("span_id"))
    if own_id is None:
        raise wrong_shape("mlflow.span_id", "missing")
    attributes = as_object(as_parsed(span.get("attributes"))) or {}
    parent = as_identifier(span.get("parent_span_id")) or as_identifier(span.get("parent_id"))
    status = as_object(span.get("status")) or {}
    gave = _attribute(attributes, "mlflow.spanOutputs")
    kind = _KINDS.get(str(_attribute(attributes, "mlflow.spanType") or "UNKNOWN"), StepKind.OTHER)
    step = Step(
        id=own_id,
        parent=parent,
        is_root=parent is None,
        kind=kind,
        begun_ns=_nanoseconds(span, "start_time_unix_nano", "start_time_ns", "start_time"),
        ended_ns=_nanoseconds(span, "end_time_unix_nano", "end_time_ns", "end_time"),
        has_failed=(status.get("code") or span.get("status_code")) in _FAILED,
        app=next((app for name in _APPS if (app := as_text(trace.tags.get(name))) is not None), None),
        model=_model(attributes, gave) if kind is StepKind.LLM else None,
        metadata=_metadata(trace) if parent is None else {},
    )
    return with_contents(step, _attribute(attributes, "mlflow.spanInputs"), gave, name=as_text(span.get("name")))


def _attribute(attributes: JsonObject, name: str) -> JsonValue:
    value = attributes.get(name)
    return None if value == "null" else as_parsed(value)


def _nanoseconds(span: JsonObject, *names: str) -> int | None:
    times = (span[name] for name in names if span.get(name) is not None)
    time = next(times, None)
    # A float would round to some hundred nanoseconds.
    return time if isinstance(time, int) else int(as_number(time) or 0) or None


def _model(attributes: JsonObject, gave: JsonValue) -> str | None:
    facts = as_object(_attribute(attributes, "metadata")) or {}
    parameters = as_object(_attribute(attributes, "invocation_params")) or {}
    answered = as_object(gave) or {}
    named = (
        _attribute(attributes, "mlflow.llm.model"),
        answered.get("model"),
        facts.get("ls_model_name"),
        parameters.get("model"),
        parameters.get("model_name"),
    )
    return next((model for name in named if (model := as_text(name)) is not None), None)


def _metadata(trace: _Trace) -> JsonObject:
    """User, session, experiment, and the tags that a person gave."""
    facts = next((held for name in _ROW_MARKS if (held := as_object(as_parsed(trace.info.get(name))))), {})
    location = as_object(trace.info.get("trace_location")) or {}
    experiment = as_object(location.get("mlflow_experiment")) or trace.info
    tags: JsonObject = {name: value for name, value in trace.tags.items() if not name.startswith(_OWN)}
    said: JsonObject = {
        "user": facts.get("mlflow.trace.user"),
        "session": facts.get("mlflow.trace.session"),
        "tags": tags or None,
        "experiment_id": experiment.get("experiment_id"),
        "client_request_id": trace.info.get("client_request_id"),
    }
    return {name: value for name, value in said.items() if value is not None}
