"""MLflow: the trace as JSON, and the row of a search."""

import os
import sys
import tempfile

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import mlflow
from content import ANSWER, PASSAGES, QUESTION
from mlflow.entities import Document, SpanType

folder = tempfile.mkdtemp()
mlflow.set_tracking_uri(f"sqlite:///{folder}/traces.db")
mlflow.set_experiment("travel-desk")


@mlflow.trace(span_type=SpanType.RETRIEVER)
def find(question):
    return [
        Document(page_content=text, metadata={**meta, "score": score}, id=name) for name, text, score, meta in PASSAGES
    ]


@mlflow.trace(span_type=SpanType.CHAIN)
def answer(question):
    find(question)
    return ANSWER


answer(QUESTION)
trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
sys.stdout.write(trace.to_json().replace("\n", " ") + "\n")
