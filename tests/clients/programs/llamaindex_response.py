"""What a program prints of a LlamaIndex response, with the question that it asked."""

import json

from content import QUESTION
from indexes import query_engine

response = query_engine().query(QUESTION)
nodes = [one.model_dump(mode="json") for one in response.source_nodes]
print(json.dumps({"question": QUESTION, "response": response.response, "source_nodes": nodes}))
