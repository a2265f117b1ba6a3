"""Traces of the tests' own making: exchanges as exporters of OpenTelemetry write them, with OpenInference's words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.exchanges import exchange

LEAST_SPANS = 5
APP = "museums"
BEGAN_NS = 1_790_000_000_000_000_000
STEP_NS = 1_000_000


def trace_id(number: int) -> str:
    """The id of the trace of an exchange, in hexadecimal."""
    return hashlib.sha256(f"trace {number}".encode()).hexdigest()[:32]


def spans(number: int, count: int = LEAST_SPANS, more: str = "") -> list[Span]:
    """The spans of an exchange, in the order in which they end: the root comes last.

    ``more`` is said at the end of the answer. Beyond the chain, its parts, the retriever and the model there are
    requests that only fill the trace up.
    """
    if count < LEAST_SPANS:
        raise ValueError("a trace has at least its chain, a retriever, a part, a prompt and a model")
    logged: Any = exchange(number)
    logged["answer"] += more
    documents = [
        {
            "document.id": passage["id"],
            "document.content": passage["text"],
            "document.score": 1 / (2 + place),
            "document.metadata": json.dumps({"page": place}),
        }
        for place, passage in enumerate(logged["passages"])
    ]
    context = [{"page_content": one["document.content"], "id": one["document.id"]} for one in documents]
    result = {"input": logged["question"], "context": context, "answer": logged["answer"]}
    retriever = {
        "input.value": logged["question"],
        "output.value": json.dumps({"documents": context}),
        **{
            f"retrieval.documents.{place}.{name}": value
            for place, one in enumerate(documents)
            for name, value in one.items()
        },
    }
    model = {
        "input.value": json.dumps({"context": str(context)}),
        "output.value": json.dumps({"text": logged["answer"]}),
        "llm.model_name": "writer-1",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": logged["answer"],
    }
    made = [
        _span(number, 2, 1, "retriever", "RETRIEVER", retriever),
        _span(number, 4, 3, "prompt", "CHAIN", {"input.value": json.dumps({"context": str(context)})}),
        _span(number, 5, 3, "model", "LLM", model),
        _span(number, 3, 1, "part", "CHAIN", {"output.value": logged["answer"]}),
    ]
    requests = [_span(number, 6 + one, 2, "GET /chunks", None, {}) for one in range(count - LEAST_SPANS)]
    root = {
        "input.value": logged["question"],
        "output.value": json.dumps(result),
        "output.mime_type": "application/json",
        "user.id": f"user-{number % 7}",
    }
    return [*requests, *made, _span(number, 1, None, "chain", "CHAIN", root)]


def message(those: Sequence[Span], app: str = APP) -> bytes:
    """A request of an exporter, as the kafka exporter of a collector writes it in protobuf."""
    resource = Resource(attributes=[_attribute("service.name", app), _attribute("openinference.project.name", app)])
    scoped = ScopeSpans(spans=those)
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=resource, scope_spans=[scoped])]
    ).SerializeToString()


def _span(
    number: int, own: int, parent: int | None, name: str, kind: str | None, attributes: dict[str, object]
) -> Span:
    told = attributes if kind is None else {"openinference.span.kind": kind, **attributes}
    began = BEGAN_NS + number * 1000 * STEP_NS + own * STEP_NS
    return Span(
        trace_id=bytes.fromhex(trace_id(number)),
        span_id=_span_id(number, own),
        parent_span_id=b"" if parent is None else _span_id(number, parent),
        name=name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=began,
        end_time_unix_nano=began + 100 * STEP_NS,
        attributes=[_attribute(key, value) for key, value in told.items()],
        flags=256,
    )


def _span_id(number: int, own: int) -> bytes:
    return hashlib.sha256(f"span {number} {own}".encode()).digest()[:8]


def _attribute(key: str, value: object) -> KeyValue:
    if isinstance(value, float):
        return KeyValue(key=key, value=AnyValue(double_value=value))
    return KeyValue(key=key, value=AnyValue(string_value=str(value)))
