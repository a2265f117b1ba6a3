"""The contract ``gasp.review-label.v1``: what one reviewer said of one sentence, or that it is taken back."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.interaction import CONTRACT, AppName, Identifier, UtcDatetime
from schemas.text import STORABLE

REVIEW_LABEL_SCHEMA: Final = "gasp.review-label.v1"
MAX_NAME_CHARS = 200
MAX_EXTERNAL_ID_CHARS = 500
MAX_NOTE_CHARS = 4000
# PostgreSQL's integer.
MAX_INDEX = 2**31 - 1

_SEPARATORS = re.compile(r"[\s_-]+")
_NOT_BLANK = r"\S"


class Label(StrEnum):
    """What a reviewer can say of a sentence."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    PARTLY = "partly"
    NOT_A_CLAIM = "not_a_claim"
    CANT_TELL = "cant_tell"


class Detail(StrEnum):
    """In what way a sentence is unsupported: nothing in the passages backs it, or something in them contradicts it."""

    BASELESS = "baseless"
    CONFLICT = "conflict"


class LabelAction(StrEnum):
    """Whether a judgement is given or taken back."""

    LABEL = "label"
    WITHDRAW = "withdraw"


def label_words(text: str) -> tuple[str, str | None]:
    """Label and detail as one spelling has them: ``Not a claim``, ``unsupported:baseless``, ``conflict``.

    Case, white space, hyphens and underscores make no difference. Whether there is such a label is for the contract.
    """
    label, _, detail = (_word(part) for part in text.partition(":"))
    if label in set(Detail):
        return Label.UNSUPPORTED, label
    return ("cant_tell" if label == "can't_tell" else label), detail or None


def _word(text: str) -> str:
    return _SEPARATORS.sub("_", text.strip().casefold())


def _member(kind: type[StrEnum]) -> BeforeValidator:
    """The member of that spelling; what is none is left for the validation to refuse."""
    members = {member.value: member for member in kind}
    return BeforeValidator(lambda value: members.get(_word(value), value) if isinstance(value, str) else value)


def _cut(value: object) -> object:
    return value[:MAX_NOTE_CHARS] if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=_NOT_BLANK), STORABLE]


class ReviewLabel(BaseModel):
    """One judgement. The same tool and external id again is the same judgement: repeated, corrected or withdrawn.

    The row with the latest ``labelled_at`` holds, whatever the order of arrival. A withdrawal need not name place and
    reviewer; one of ``17`` then takes back ``17`` and every ``17:<n>``, which is what came in of a tool that labels
    several sentences at once.
    """

    model_config = CONTRACT

    schema_name: Literal["gasp.review-label.v1"] = Field(REVIEW_LABEL_SCHEMA, alias="schema")
    tool: Name = Field(description="Where the judgement was made; external ids are its own.")
    external_id: Annotated[str, Field(min_length=1, max_length=MAX_EXTERNAL_ID_CHARS, pattern=_NOT_BLANK), STORABLE] = (
        Field(description="The judgement's id in the tool.")
    )
    action: Annotated[LabelAction, _member(LabelAction)] = LabelAction.LABEL
    task_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None,
        description="The task that was labelled. With app, interaction_id and revision the label finds its answer also "
        "where nobody knows the task, as after a backup was restored; they may stand alone, too.",
    )
    app: AppName | None = None
    interaction_id: Identifier | None = None
    revision: Annotated[int, Field(ge=1, le=MAX_INDEX)] | None = Field(
        None, description="Which content of the interaction; the first if absent."
    )
    sentence_index: Annotated[int, Field(ge=0, le=MAX_INDEX)] | None = Field(
        None, description="The sentence's index in the task, from 0."
    )
    label: Annotated[Label, _member(Label)] | None = Field(
        None,
        description="Case, spaces and hyphens make no difference; unsupported:baseless and baseless are read, too.",
    )
    detail: Annotated[Detail, _member(Detail)] | None = Field(None, description="Only of what is unsupported.")
    reviewer: Name | None = Field(None, description="Who judged, by a name that stays the same.")
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS), BeforeValidator(_cut), STORABLE] | None = Field(
        None, description=f"Free text; what is longer than {MAX_NOTE_CHARS} characters is cut off."
    )
    labelled_at: UtcDatetime | None = Field(
        None, description="When. Epochs and ISO 8601 are read; no zone is UTC. If absent, when it came in."
    )

    @model_validator(mode="before")
    @classmethod
    def _spelling(cls, value: object) -> object:
        """Split ``unsupported:baseless`` and its like into label and detail."""
        if not isinstance(value, dict) or not isinstance(value.get("label"), str):
            return value
        label, detail = label_words(value["label"])
        return {**value, "label": label, **({"detail": detail} if detail and value.get("detail") is None else {})}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action is LabelAction.WITHDRAW:
            if self.label is not None or self.detail is not None:
                raise PydanticCustomError("label_withdrawn", "what is withdrawn has no label")
            return self
        if self.label is None:
            raise PydanticCustomError("label_missing", "label is missing")
        if self.detail is not None and self.label is not Label.UNSUPPORTED:
            raise PydanticCustomError("detail_without_unsupported", "detail goes with unsupported only")
        if self.sentence_index is None:
            raise PydanticCustomError("sentence_index_missing", "sentence_index is missing")
        if self.reviewer is None:
            raise PydanticCustomError("reviewer_missing", "reviewer is missing")
        if not self._names_answer:
            raise PydanticCustomError("place_missing", "task_id, or app and interaction_id, are missing")
        return self

    @property
    def is_placed(self) -> bool:
        """Whether it says by itself whose judgement of which sentence it is; of withdrawals not all do."""
        return self._names_answer and self.sentence_index is not None and self.reviewer is not None

    @property
    def _names_answer(self) -> bool:
        return self.task_id is not None or (self.app is not None and self.interaction_id is not None)
