"""OpenInference on LangChain; the second argument names the chain, a third sends a span a message."""

import sys

import chains
from content import QUESTION
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from tracing import traced

chain = getattr(chains, sys.argv[2])()
key = {"retrieval_chain": "input", "retrieval_qa": "query"}.get(sys.argv[2])
with traced(one_by_one=len(sys.argv) > 3) as provider:
    LangChainInstrumentor().instrument(tracer_provider=provider)
    with using_attributes(session_id="s-7", user_id="u-7", tags=["night"]):
        chain.invoke({key: QUESTION} if key else QUESTION)
