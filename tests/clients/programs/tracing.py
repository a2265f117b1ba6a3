"""A tracer whose spans go to the address that the program was given."""

import sys
from contextlib import contextmanager

from content import APP
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

URL = sys.argv[1]


@contextmanager
def traced(*, one_by_one=False, **attributes):
    provider = TracerProvider(resource=Resource.create({"service.name": APP, **attributes}))
    processor = SimpleSpanProcessor if one_by_one else BatchSpanProcessor
    provider.add_span_processor(processor(OTLPSpanExporter(endpoint=f"{URL}/v1/traces")))
    trace.set_tracer_provider(provider)
    yield provider
    provider.force_flush()
    provider.shutdown()
