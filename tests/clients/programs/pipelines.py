"""A Haystack pipeline that asks the model at the address."""

from content import PASSAGES, QUESTION
from haystack import Document, Pipeline
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

TEMPLATE = "{% for one in documents %}{{ one.content }}\n{% endfor %}Asked: {{ query }}"


def run(url):
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=name, content=text, meta=meta) for name, text, _, meta in PASSAGES])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
    prompt = ChatPromptBuilder(template=[ChatMessage.from_user(TEMPLATE)], required_variables="*")
    pipeline.add_component("prompt", prompt)
    generator = OpenAIChatGenerator(api_key=Secret.from_token("x"), api_base_url=f"{url}/v1", model="gpt-4o-mini")
    pipeline.add_component("model", generator)
    pipeline.add_component("answers", AnswerBuilder())
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    pipeline.connect("model.replies", "answers.replies")
    pipeline.connect("retriever.documents", "answers.documents")
    asked = {"query": QUESTION}
    return pipeline.run({"retriever": asked, "prompt": asked, "answers": asked})
