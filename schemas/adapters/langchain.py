"""Results of LangChain's chains and agents, however they were dumped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import rename
from schemas.adapters.flat import FLAT_NAMES
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.traces.messages import unwrapped
from schemas.values import as_parsed

# create_retrieval_chain and LCEL, RetrievalQA, the chains that combine documents; in JavaScript in camel case.
_PASSAGES = ("context", "source_documents", "sourceDocuments", "input_documents", "documents", "intermediate_steps")
_ANSWERS = ("answer", "result", "output_text", "output", "response", "generation", "text")
_QUESTIONS = tuple(dict.fromkeys(("input", *FLAT_NAMES.question)))
_NAMES = replace(FLAT_NAMES, question=_QUESTIONS, passages=_PASSAGES, answer=_ANSWERS)
_CONTENTS = ("page_content", "pageContent")
_PRINTED = ("page_content=", "Document(", "[Document(")
_STEP = 2


@dataclass(frozen=True, slots=True)
class LangChainAdapter:
    """Reads rows that have an answer and LangChain's documents, or the steps of an agent.

    What the tools of an agent gave are its passages.
    """

    name: str = "langchain"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether there are an answer and documents of LangChain under the names of its chains."""
        return any(name in row for name in _ANSWERS) and any(_is_ours(row.get(name)) for name in _PASSAGES)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row under our names. Raises UnusablePayload (wrong_shape)."""
        name = next((name for name in _PASSAGES if _is_ours(row.get(name))), None)
        names = _NAMES if name is None else replace(_NAMES, passages=(name,))
        if name == "intermediate_steps":
            row = {**row, name: _observed(row[name])}
        return (rename(row, names, likeness="a result of LangChain"),)


def _is_ours(logged: JsonValue) -> bool:
    logged = as_parsed(logged)
    if isinstance(logged, str):
        return logged.startswith(_PRINTED)
    first = logged[0] if isinstance(logged, list) and logged else None
    if isinstance(first, list):
        return len(first) == _STEP and isinstance(first[0], dict) and "tool" in unwrapped(first[0])
    if isinstance(first, str):
        return first.startswith(_PRINTED)
    return isinstance(first, dict) and any(name in unwrapped(first) for name in _CONTENTS)


def _observed(steps: JsonValue) -> JsonValue:
    """What the tools of an agent gave: of each step, an action and what was observed, the latter."""
    observed: list[JsonValue] = []
    for step in steps if isinstance(steps, list) else ():
        given = step[1] if isinstance(step, list) and len(step) == _STEP else step
        observed += given if isinstance(given, list) else [given]
    return observed
