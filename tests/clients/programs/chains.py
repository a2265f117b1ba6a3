"""LangChain's parts, with a model and a retriever that always give the same."""

from content import ANSWER, PASSAGES, TEMPLATE
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(id=name, page_content=text, metadata={**meta, "score": score})
            for name, text, score, meta in PASSAGES
        ]


def model():
    return FakeListChatModel(responses=[ANSWER])


def prompt():
    return ChatPromptTemplate.from_template(TEMPLATE)


def retrieval_chain(llm=None):
    return create_retrieval_chain(Shelf(), create_stuff_documents_chain(llm or model(), prompt()))


def lcel():
    joined = Shelf() | (lambda documents: "\n\n".join(one.page_content for one in documents))
    return {"context": joined, "input": RunnablePassthrough()} | prompt() | model() | StrOutputParser()


def retrieval_qa():
    return RetrievalQA.from_chain_type(model(), retriever=Shelf(), return_source_documents=True)
