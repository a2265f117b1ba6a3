"""What a program prints of LangChain results: dumps, model_dump, a message as the answer, str of documents."""

import json

import chains
from content import QUESTION
from langchain_core.load import dumps

chain = chains.retrieval_chain().invoke({"input": QUESTION})
asked = chains.retrieval_qa().invoke({"query": QUESTION})
documents = [one.model_dump() for one in chain["context"]]
print(dumps(chain))
print(json.dumps({**chain, "context": documents}))
print(json.dumps(chain, default=str))
print(dumps(asked))
message = chains.model().invoke(QUESTION)
print(json.dumps({"input": QUESTION, "context": documents, "answer": message.model_dump()}))
