"""The contract ``gasp.review-task.v1``: one answer, some of whose sentences people are asked about.

What travels to reviewers: the question, its passages and the whole answer, cut into its sentences with their scores.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from schemas.interaction import AppName, Identifier, UtcDatetime

REVIEW_TASK_SCHEMA: Final = "gasp.review-task.v1"

# What is sent was validated when it was stored; consumers must let further fields pass.
_CONTRACT = ConfigDict(
    frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra={"additionalProperties": True}
)

Probability = Annotated[float, Field(ge=0, le=1)]


class AskReason(StrEnum):
    """Why people are asked: the sentence is flagged, or it is one of a random sample of the others."""

    FLAGGED = "flagged"
    SAMPLED = "sampled"


class Attribution(StrEnum):
    """What is known of the passage that supports a sentence; ``waiting`` in a task that did not wait for longer."""

    SUPPORTED = "supported"
    NONE_REACTS = "none_reacts"
    WAITING = "waiting"
    FAILED = "failed"
    NOT_WANTED = "not_wanted"


class TaskPassage(BaseModel):
    """One passage as the generator saw it."""

    model_config = _CONTRACT

    position: int = Field(ge=0, description="From 0, in the order in which the generator saw them.")
    id: str = Field(description="The retriever's id.")
    text: str
    cut_chars: int = Field(
        0, ge=0, description="Characters that were cut off the end of the text to keep the message within its limit."
    )


class TaskSentence(BaseModel):
    """One sentence of the answer. Those that are not asked about are there to be read with the others."""

    model_config = _CONTRACT

    index: int = Field(ge=0, description="From 0; a label names its sentence by this.")
    start: int = Field(ge=0, description="First code point of the answer that belongs to it.")
    end: int = Field(ge=0, description="The one behind its last.")
    text: str = Field(description="The answer from start to end.")
    kind: str = Field(description="prose, list_item, table_row, table_rule, heading, code or thought.")
    asked: bool = Field(description="Whether a label is asked for.")
    reason: AskReason | None = Field(None, description="Why it is asked about; null if it is not.")
    probability: Probability | None = Field(
        None, description="How likely it was to be asked about; one over it is the weight of its label."
    )
    score: float | None = Field(None, description="The detector's; higher is more grounded.")
    gap: float | None = Field(None, description="Likelihood lost without the passages, nats per token.")
    jsd_no_context: float | None = Field(None, description="Jensen-Shannon divergence without the passages, nats.")
    surprisal: float | None = Field(None, description="With the passages, nats per token.")
    unsupported_probability: Probability | None = Field(
        None, description="Calibrated on labels; null before there are enough."
    )
    flagged: bool | None = Field(None, description="Whether the score lay below the threshold; null without a score.")
    skip_reason: str | None = Field(None, description="Why it has no score.")
    supporting_passage_position: int | None = Field(None, ge=0)
    supporting_passage_id: str | None = None
    supporting_passage_positions: tuple[int, ...] = Field(
        (), description="All passages that support it in each other's stead, that one among them."
    )
    support_unlocated: bool = Field(
        default=False,
        description="Whether the passages support it, but no few of them account for that; none is named then.",
    )
    attribution: Attribution = Field(description="What is known of the supporting passage.")
    worst_start: int | None = Field(
        None, ge=0, description="First code point of its words that are grounded least; null if they are not known."
    )
    worst_end: int | None = Field(None, ge=0, description="The one behind their last.")


class ReviewTask(BaseModel):
    """One task. The same event id again is the same message; the same task id in a later round asks once more.

    A task that is withdrawn after it was told is told once more, in its last message, with the reason.
    """

    model_config = _CONTRACT

    schema_name: Literal["gasp.review-task.v1"] = Field(REVIEW_TASK_SCHEMA, alias="schema")
    event_id: UUID | None = Field(None, description="The same in every repeat of the message; null in an export.")
    task_id: UUID = Field(description="Labels name their task by this.")
    round: int = Field(ge=1, description="1, and one more each time the reviewers differed.")
    reason: AskReason = Field(description="Flagged if any of its sentences is.")
    probability: Probability = Field(description="The largest of its sentences'.")
    app: AppName
    interaction_id: Identifier
    revision: int = Field(ge=1, description="Which content of the interaction the answer is.")
    created_at: UtcDatetime
    scorer: str = Field(description="The scorer identity: model, revision, dtype, template, and method with detector.")
    threshold_version: str = Field(description="App and version of the threshold that judged it.")
    question: str
    passages: tuple[TaskPassage, ...]
    answer: str
    sentences: tuple[TaskSentence, ...] = Field(description="All of the answer's, which they tile.")
    withdrawn_because: str | None = Field(
        None,
        exclude_if=lambda reason: reason is None,
        description="Why nobody need answer any more; then no sentence is asked about. Absent while answers count.",
    )
