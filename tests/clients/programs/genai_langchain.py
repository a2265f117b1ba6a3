"""OpenTelemetry's own instrumentation of LangChain."""

import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
import chains
from content import QUESTION
from langchain_openai import ChatOpenAI
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor
from tracing import URL, traced

with traced() as provider:
    LangChainInstrumentor().instrument(tracer_provider=provider)
    model = ChatOpenAI(model="gpt-4o-mini", api_key="x", base_url=f"{URL}/v1")
    chains.retrieval_chain(model).invoke({"input": QUESTION})
