"""LangSmith's own tracing of LangChain: runs to its API, or spans of OpenTelemetry."""

import os
import sys

os.environ |= {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_ENDPOINT": sys.argv[1],
    "LANGSMITH_API_KEY": "x",
    "LANGSMITH_PROJECT": "travel-desk",
}
if "otel" in sys.argv:
    os.environ |= {
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": sys.argv[1],
    }
import chains
from content import QUESTION
from langchain_core.tracers.langchain import wait_for_all_tracers

chains.retrieval_chain().invoke({"input": QUESTION}, config={"metadata": {"user_id": "u-7"}})
wait_for_all_tracers()
if "otel" in sys.argv:
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()
