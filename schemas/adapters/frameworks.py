"""The formats of frameworks and evaluation libraries, in the order in which a row is offered to them."""

from __future__ import annotations

from schemas.adapters.adapter import Adapter
from schemas.adapters.deepeval import DeepEvalAdapter
from schemas.adapters.flat import FlatAdapter
from schemas.adapters.haystack import HaystackAdapter
from schemas.adapters.inputs_outputs import InputsOutputsAdapter
from schemas.adapters.langchain import LangChainAdapter
from schemas.adapters.langgraph import LangGraphAdapter
from schemas.adapters.llamaindex import LlamaIndexAdapter
from schemas.adapters.ragas import RagasAdapter

_BARE: tuple[Adapter, ...] = (
    RagasAdapter(),
    DeepEvalAdapter(),
    LlamaIndexAdapter(),
    HaystackAdapter(),
    LangChainAdapter(),
    LangGraphAdapter(),
)

FRAMEWORKS: tuple[Adapter, ...] = (*_BARE, InputsOutputsAdapter((*_BARE, FlatAdapter())))
