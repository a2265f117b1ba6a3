"""What one step of a trace says about an exchange, whichever system logged it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, JsonValue

from schemas.envelope import JsonObject


class StepKind(StrEnum):
    """What a step does. A chain holds others: chains, agents, workflows, tasks, pipelines, query engines.

    ``other`` steps (a web request, an embedding, a tool) only connect those above them with those below.
    """

    CHAIN = "chain"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    LLM = "llm"
    OTHER = "other"


class Document(BaseModel):
    """A document that a step retrieved. ``text`` is None where the log names it without what it says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    id: str | None = None
    score: float | None = None
    metadata: JsonObject = {}


class Step(BaseModel):
    """One step: a span, a run, an observation, an event. None: this report does not say.

    A step may be reported several times (when it begins, when it ends, again after a lost acknowledgement): reports of
    the same ``id`` are merged field by field, of which the one with the higher ``order`` counts. ``order`` is
    whatever grows from report to report in the format: (has it ended, epoch in nanoseconds).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    order: tuple[int, int] = (1, 0)
    parent: str | None = None
    # The format says that nothing of this trace lies above: no parent, or a parent in another process's trace.
    is_root: bool | None = None
    kind: StepKind | None = None
    # Nanoseconds since the epoch.
    begun_ns: int | None = None
    ended_ns: int | None = None
    has_failed: bool | None = None
    # What the step was asked, and what it gave, as texts that a person would read.
    question: str | None = None
    answer: str | None = None
    # What it retrieved or kept, in its order; empty if it found none.
    documents: tuple[Document, ...] | None = None
    # The evidence as one text, where it is known to be that (a variable of the prompt named context).
    context: str | None = None
    # What a model was told by the user, which may hold evidence and question together.
    prompt: str | None = None
    # Parts of the answer that are the model's thoughts and were not shown.
    thoughts: str | None = None
    app: str | None = None
    model: str | None = None
    # User, session, tags and the like.
    metadata: JsonObject = {}

    @property
    def has_ended(self) -> bool:
        """Whether the step is known to be over."""
        return self.ended_ns is not None

    def to_json(self) -> JsonValue:
        """For a column of JSON; what is not said is left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def from_json(cls, logged: JsonValue) -> Self:
        """Read what ``to_json`` wrote."""
        return cls.model_validate(logged)
