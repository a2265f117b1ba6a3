"""The contract ``gasp.interaction.v1``: one logged exchange of a question, its retrieved passages and the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Final, Literal

import orjson
from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from schemas.text import STORABLE, StorableJson, StorableText
from schemas.timestamps import in_utc

INTERACTION_SCHEMA: Final = "gasp.interaction.v1"
MAX_ID_CHARS = 512
# App and interaction id share one index entry: 128 + 512 characters of four bytes still fit PostgreSQL's 2,704 bytes.
MAX_APP_CHARS = 128
MAX_PASSAGES = 1000
# Some hundred pages. Each of its sentences becomes a row, so an answer without end would be a transaction without end.
MAX_ANSWER_CHARS = 200_000

_NOT_BLANK = r"\S"

Identifier = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS, pattern=_NOT_BLANK), STORABLE]
AppName = Annotated[str, Field(min_length=1, max_length=MAX_APP_CHARS, pattern=_NOT_BLANK), STORABLE]
UtcDatetime = Annotated[AwareDatetime, AfterValidator(in_utc)]

# Strict: "1" is no number and 1 is no text. The open object in the published schema says what adapters do with
# further fields: they are kept in the metadata.
CONTRACT = ConfigDict(
    frozen=True,
    strict=True,
    extra="forbid",
    allow_inf_nan=False,
    json_schema_extra={"additionalProperties": True},
)


class Passage(BaseModel):
    """One retrieved passage. The id need not be unique in an exchange: the position tells passages apart."""

    model_config = CONTRACT

    id: Identifier = Field(description="The retriever's id of the passage, or ctx-<n> by position from 1.")
    text: StorableText = Field(description="The passage; may be blank.")
    score: float | None = Field(None, description="The retriever's score, finite; any scale.")
    metadata: StorableJson = Field(default_factory=dict, description="Whatever else was logged with the passage.")


class AnswerMark(BaseModel):
    """A span of the answer that is no part of what it says: a mark of a citation, as ``[doc1]``."""

    model_config = CONTRACT

    start: int = Field(ge=0, description="First code point of the answer that belongs to it.")
    end: int = Field(gt=0, description="The one behind its last.")


class Interaction(BaseModel):
    """One logged exchange, valid and storable. Every time is UTC."""

    model_config = CONTRACT

    schema_name: Literal["gasp.interaction.v1"] = Field(INTERACTION_SCHEMA, alias="schema")
    interaction_id: Identifier = Field(description="Unique in the app; the same id again is the same exchange.")
    app: AppName = Field(description="The application that answered; thresholds are kept per app.")
    occurred_at: UtcDatetime | None = Field(
        None,
        description="When the answer was given. Epochs in s, ms, us or ns and ISO 8601 are read too; no zone is UTC.",
    )
    question: StorableText = Field("", description="What was asked; may be empty.")
    passages: Annotated[tuple[Passage, ...], Field(strict=False, max_length=MAX_PASSAGES)] = Field(
        (), description="The retrieved passages in the order in which the generator saw them."
    )
    answer: Annotated[str, Field(max_length=MAX_ANSWER_CHARS), STORABLE] = Field(
        description="The answer as it was shown; may be empty. Sentence spans index it."
    )
    answer_marks: Annotated[tuple[AnswerMark, ...], Field(strict=False)] = Field(
        (), description="Spans of the answer that are shown and not scored, in order, none over another."
    )
    generator_model: Annotated[str, Field(max_length=MAX_ID_CHARS), STORABLE] | None = Field(
        None,
        validation_alias=AliasChoices("generator_model", "generator", "model"),
        description="The model that wrote the answer.",
    )
    metadata: StorableJson = Field(default_factory=dict, description="Whatever else was logged.")

    @field_validator("answer_marks")
    @classmethod
    def _check_marks(cls, marks: tuple[AnswerMark, ...], others: ValidationInfo) -> tuple[AnswerMark, ...]:
        ends = [0, *(mark.end for mark in marks)]
        within = ends[-1] <= len(others.data.get("answer", ""))
        if not within or any(not end <= mark.start < mark.end for end, mark in zip(ends, marks, strict=False)):
            raise PydanticCustomError("not_in_order", "must lie in the answer, in order, none over another")
        return marks

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """The spans of ``answer_marks``, as pairs."""
        return tuple((mark.start, mark.end) for mark in self.answer_marks)

    @property
    def content_hash(self) -> str:
        """What makes two exchanges the same: 64 hexadecimal characters over question, passages and answer."""
        passages = ((passage.id, passage.text) for passage in self.passages)
        return content_hash(self.question, passages, self.answer, self.marks)


def content_hash(
    question: str, passages: Iterable[tuple[str, str]], answer: str, marks: Iterable[tuple[int, int]] = ()
) -> str:
    """Return the SHA-256 of the content in hexadecimal; ``passages`` are (id, text), ``marks`` (start, end), in order.

    The content is hashed as a JSON array, so that text can never move across the border of two fields unseen. What has
    no marks has the hash that it had before there were any.
    """
    cut = list(marks)
    content = orjson.dumps([question, list(passages), answer, *([cut] if cut else [])])
    return hashlib.sha256(content).hexdigest()
