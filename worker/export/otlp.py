"""Results as OpenTelemetry events: log records named gen_ai.evaluation.result, on the span that was evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from worker.export.post import Post
from worker.rules.exports import AnswerResults, Result

EVENT = "gen_ai.evaluation.result"
SCOPE = "gasp-audit"
_SPAN_HEX_CHARS = 16


class OtlpExport:
    """Posts to an address of OTLP/HTTP for logs."""

    def __init__(self, url: str, headers: str) -> None:
        pairs = (pair.partition("=") for pair in headers.split(",") if pair)
        self._headers = {name.strip(): value.strip() for name, _, value in pairs}
        self._url = url

    def posts(self, answer: AnswerResults) -> Iterator[Post]:
        """One request with all results. A receiver tells repeats by gasp.result.id."""
        resource = Resource(attributes=[_attribute("service.name", SCOPE)])
        records = [_record(answer, result) for result in answer.results]
        scope = ScopeLogs(scope=InstrumentationScope(name=SCOPE), log_records=records)
        request = ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope])])
        headers = {"Content-Type": "application/x-protobuf", **self._headers}
        ids = frozenset(str(result.id) for result in answer.results)
        yield Post(ids, self._url, request.SerializeToString(), headers)

    def lookup(self, answer: AnswerResults) -> None:
        """None: a receiver tells repeats by gasp.result.id."""


def _record(answer: AnswerResults, result: Result) -> LogRecord:
    time_ns = int(answer.scored_at.timestamp() * 1e9)
    facts: dict[str, str | float | int | None] = {
        "gen_ai.evaluation.name": result.name,
        "gen_ai.evaluation.score.value": result.score,
        "gen_ai.evaluation.score.label": result.label,
        "gen_ai.evaluation.explanation": result.explanation,
        "gasp.result.id": str(result.id),
        "gasp.app": answer.app,
        "gasp.interaction_id": answer.interaction_id,
        "gasp.scorer": answer.scorer,
        "gasp.sentence.index": result.sentence,
        "gasp.sentence.start": result.start,
        "gasp.sentence.end": result.end,
    }
    return LogRecord(
        time_unix_nano=time_ns,
        observed_time_unix_nano=time_ns,
        event_name=EVENT,
        trace_id=bytes.fromhex(answer.trace_id),
        span_id=_span_id(answer.span_id),
        attributes=[_attribute(name, value) for name, value in facts.items() if value is not None],
    )


def _span_id(span_id: str | None) -> bytes:
    try:
        return bytes.fromhex(span_id or "") if len(span_id or "") == _SPAN_HEX_CHARS else b""
    except ValueError:
        return b""


def _attribute(name: str, value: str | float) -> KeyValue:
    if isinstance(value, str):
        return KeyValue(key=name, value=AnyValue(string_value=value))
    if isinstance(value, int):
        return KeyValue(key=name, value=AnyValue(int_value=value))
    return KeyValue(key=name, value=AnyValue(double_value=value))
