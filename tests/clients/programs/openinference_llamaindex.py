"""OpenInference on LlamaIndex."""

from content import QUESTION
from indexes import query_engine
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from tracing import traced

with traced() as provider:
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    query_engine().query(QUESTION)
