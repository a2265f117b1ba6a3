"""OpenLLMetry on LangChain."""

import os

os.environ["TRACELOOP_TELEMETRY"] = "false"
import chains
from content import APP, QUESTION
from langchain_openai import ChatOpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import workflow
from tracing import URL

Traceloop.init(app_name=APP, exporter=OTLPSpanExporter(endpoint=f"{URL}/v1/traces"), telemetry_enabled=False)


@workflow(name="trip")
def answer(question):
    model = ChatOpenAI(model="gpt-4o-mini", api_key="x", base_url=f"{URL}/v1")
    return chains.retrieval_chain(model).invoke({"input": question})["answer"]


answer(QUESTION)
trace.get_tracer_provider().force_flush()
