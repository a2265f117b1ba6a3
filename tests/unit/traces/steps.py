"""Steps of made-up traces."""

from __future__ import annotations

from schemas.traces.step import Document, Step, StepKind

TRACE = "t-1"
TEA = Document(text="Tea is drunk hot.", id="d-1", score=0.9)
MILK = Document(text="Milk is drunk cold.", id="d-2", score=0.5)


def step(step_id: str, parent: str | None = None, kind: StepKind = StepKind.OTHER, at: int = 0, **more: object) -> Step:
    """A step that begins at ``at`` and ends ten later, if nothing else is said."""
    known = {"begun_ns": at, "ended_ns": at + 10, "is_root": parent is None, **more}
    return Step.model_validate({"id": step_id, "parent": parent, "kind": kind, **known})


def chain(step_id: str, parent: str | None = None, at: int = 0, **more: object) -> Step:
    return step(step_id, parent, StepKind.CHAIN, at, **more)


def retriever(step_id: str, parent: str | None, *documents: Document, at: int = 1, **more: object) -> Step:
    return step(step_id, parent, StepKind.RETRIEVER, at, **{"ended_ns": at + 1, "documents": documents, **more})


def reranker(step_id: str, parent: str | None, *documents: Document, at: int = 2) -> Step:
    return step(step_id, parent, StepKind.RERANKER, at, ended_ns=at + 1, documents=documents)


def llm(step_id: str, parent: str | None, answer: str | None = "Hot.", at: int = 5, **more: object) -> Step:
    return step(step_id, parent, StepKind.LLM, at, **{"ended_ns": at + 1, "answer": answer, **more})


def rag() -> list[Step]:
    """The steps of one exchange: a chain above a retriever and a model."""
    return [
        chain("root", question="How is tea drunk?", answer="Hot.", app="tea-room", metadata={"user": "u-1"}),
        retriever("found", "root", TEA, MILK, question="tea"),
        llm("said", "root", model="m-1"),
    ]
