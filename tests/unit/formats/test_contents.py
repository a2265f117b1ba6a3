from __future__ import annotations

import pytest
from pydantic import JsonValue

from schemas.traces.contents import with_contents
from schemas.traces.step import Document, Step, StepKind

TEA: JsonValue = {"id": "tea-1", "text": "Tea is brewed at 90 °C."}
DOCUMENT = Document(id="tea-1", text="Tea is brewed at 90 °C.")


def told(
    kind: StepKind | None, given: JsonValue, gave: JsonValue, *, is_root: bool = False, name: str | None = None
) -> Step:
    return with_contents(Step(id="s", kind=kind, is_root=is_root), given, gave, name=name)


def test_a_retriever_was_asked_and_found_documents() -> None:
    found = told(StepKind.RETRIEVER, {"query": "How hot?"}, [TEA])
    assert (found.question, found.documents) == ("How hot?", (DOCUMENT,))


def test_a_retriever_that_gives_one_text_has_it_as_context() -> None:
    assert told(StepKind.RETRIEVER, "How hot?", "Tea is hot.").context == "Tea is hot."
    assert told(StepKind.RETRIEVER, "How hot?", ["<NodeWithScore(node=TextNode(id_=1))>"]).context is None


def test_a_chain_has_question_and_answer_and_at_the_root_what_it_gives_beside_them() -> None:
    gave: JsonValue = {"answer": "Hot.", "context": [TEA]}
    root = told(StepKind.CHAIN, {"question": "How hot?"}, gave, is_root=True)
    assert (root.question, root.answer, root.documents) == ("How hot?", "Hot.", (DOCUMENT,))
    assert told(StepKind.CHAIN, {}, gave).documents is None
    assert told(StepKind.CHAIN, {}, {"answer": "Hot.", "context": "Tea."}, is_root=True).context == "Tea."


def test_a_model_was_told_a_prompt() -> None:
    said = told(StepKind.LLM, {"prompts": ["Tea. How hot?"]}, {"text": "Hot."})
    assert (said.prompt, said.answer) == ("Tea. How hot?", "Hot.")


def test_another_step_says_nothing() -> None:
    assert told(StepKind.OTHER, "in", "out") == Step(id="s", kind=StepKind.OTHER, is_root=False)


def test_a_report_that_does_not_say_the_kind_says_all_that_it_may_mean() -> None:
    told_all = told(None, "How hot?", {"documents": [TEA], "answer": "Hot."})
    assert (told_all.kind, told_all.question, told_all.answer) == (None, "How hot?", "Hot.")
    assert told_all.documents == (DOCUMENT,)


@pytest.mark.parametrize(
    ("gave", "name", "kind"),
    [
        ([TEA], None, StepKind.RETRIEVER),
        ({"documents": [TEA], "query": "Q"}, None, StepKind.RETRIEVER),
        ([TEA], "cohere_rerank", StepKind.RERANKER),
        ([TEA], "grade_documents", StepKind.RERANKER),
        (["Tea."], "NotesRetriever", StepKind.RETRIEVER),
        (["Tea."], "retrieval chain", StepKind.CHAIN),
        (None, "retrieval", StepKind.RETRIEVER),
        (None, "retrieval_chain", StepKind.CHAIN),
        ([], "retriever", StepKind.RETRIEVER),
        (["Tea."], "split", StepKind.CHAIN),
        ([], "tools", StepKind.CHAIN),
        ({"context": [TEA], "answer": "A"}, "retrieval_chain", StepKind.CHAIN),
        ([{"role": "user", "content": "Q"}], "retrieve", StepKind.CHAIN),
    ],
)
def test_a_step_that_gives_documents_and_nothing_else_has_retrieved(
    gave: JsonValue, name: str | None, kind: StepKind
) -> None:
    assert told(StepKind.CHAIN, "Q", gave, name=name).kind is kind
    assert told(StepKind.CHAIN, "Q", gave, name=name, is_root=True).kind is StepKind.CHAIN


def test_a_model_that_gives_what_looks_like_documents_stays_one() -> None:
    assert told(StepKind.LLM, "Q", [TEA]).kind is StepKind.LLM
