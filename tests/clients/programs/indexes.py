"""LlamaIndex' query engine, with a model and a retriever that always give the same."""

from content import ANSWER, PASSAGES
from llama_index.core import Settings, get_response_synthesizer
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode


class Scripted(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata(model_name="scripted-1")

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **_):
        yield CompletionResponse(text=ANSWER, delta=ANSWER)


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(id_=name, text=text, metadata=meta), score=score)
            for name, text, score, meta in PASSAGES
        ]


def query_engine():
    Settings.llm = Scripted()
    return RetrieverQueryEngine(Shelf(), get_response_synthesizer(llm=Scripted()))
