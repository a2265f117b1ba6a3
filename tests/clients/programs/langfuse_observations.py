"""Langfuse: observations by hand, or the callback of LangChain."""

import os
import sys

os.environ |= {
    "LANGFUSE_PUBLIC_KEY": "pk-lf-x",
    "LANGFUSE_SECRET_KEY": "sk-lf-x",
    "LANGFUSE_HOST": sys.argv[1],
    "LANGFUSE_BASE_URL": sys.argv[1],
}
from content import ANSWER, PASSAGES, QUESTION
from langfuse import Langfuse

client = Langfuse()
if sys.argv[2] == "by_hand":
    found = [{"id": name, "text": text, "score": score, "metadata": meta} for name, text, score, meta in PASSAGES]
    with client.start_as_current_observation(name="trip", as_type="chain", input=QUESTION) as root:
        with client.start_as_current_observation(name="find", as_type="retriever", input=QUESTION) as retriever:
            retriever.update(output=found)
        with client.start_as_current_observation(name="say", as_type="generation", model="gpt-4o-mini") as generation:
            generation.update(input=[{"role": "user", "content": QUESTION}], output=ANSWER)
        root.update(output=ANSWER)
else:
    import chains
    from langfuse.langchain import CallbackHandler

    chains.retrieval_chain().invoke({"input": QUESTION}, config={"callbacks": [CallbackHandler()]})
client.flush()
