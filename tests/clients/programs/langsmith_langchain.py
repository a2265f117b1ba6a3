"""LangSmith's own tracing of LangChain."""

import os
import sys

os.environ |= {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_ENDPOINT": sys.argv[1],
    "LANGSMITH_API_KEY": "x",
    "LANGSMITH_PROJECT": "travel-desk",
}
import chains
from content import QUESTION
from langchain_core.tracers.langchain import wait_for_all_tracers

chains.retrieval_chain().invoke({"input": QUESTION}, config={"metadata": {"user_id": "u-7"}})
wait_for_all_tracers()
