"""OpenInference on Haystack."""

import sys

from openinference.instrumentation.haystack import HaystackInstrumentor
from pipelines import run
from tracing import traced

with traced() as provider:
    HaystackInstrumentor().instrument(tracer_provider=provider)
    run(sys.argv[1])
