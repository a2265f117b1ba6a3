"""The contract ``gasp.dead_letter.v1``: what travels beside the original bytes of a message that cannot be used.

The bytes stay as they were. These facts travel as headers named ``gasp-…``, in front of the original headers.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import NotADeadLetter
from schemas.headers import Headers, header_texts, without_first
from schemas.interaction import UtcDatetime
from schemas.reject_reason import RejectReason
from schemas.text import StorableText

DEAD_LETTER_SCHEMA: Final = "gasp.dead_letter.v1"
MAX_DETAIL_CHARS = 500


class DeadLetter(BaseModel):
    """One rejected message: where it lay, why it cannot be used, and whether its bytes are attached."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"additionalProperties": True})

    schema_name: Literal["gasp.dead_letter.v1"] = Field(DEAD_LETTER_SCHEMA, alias="schema")
    reason: RejectReason = Field(description="Why, as one fixed word.")
    detail: StorableText = Field(
        "", max_length=MAX_DETAIL_CHARS, description="The place and the rule that it breaks; never message text."
    )
    topic: StorableText = Field(description="Where the original lies.")
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    timestamp_ms: int | None = Field(None, description="The original record's epoch in milliseconds, as Kafka had it.")
    size_bytes: int = Field(ge=0, description="Bytes of the original value.")
    value_attached: bool = Field(
        description="Whether this message carries the original value. If not, it is in the original topic only."
    )
    headers_attached: bool = Field(
        True,  # noqa: FBT003 - a default
        description="Whether key and headers are the original's. If not, they too are in the original topic only.",
    )
    rejected_at: UtcDatetime

    def to_headers(self, original: Headers = ()) -> tuple[tuple[str, bytes | None], ...]:
        """Return these facts as headers, followed by the original headers unchanged. An absent fact has no header."""
        facts = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        own = ((_header_name(name), _header_text(value).encode()) for name, value in facts.items())
        return (*own, *original)

    @classmethod
    def from_headers(cls, headers: Headers) -> DeadLetter:
        """Read what ``to_headers`` wrote; the first header of a name counts. Raises NotADeadLetter."""
        texts = header_texts(headers)
        facts = {name: texts[header] for name, header in _HEADERS.items() if header in texts}
        try:
            return cls.model_validate_strings(facts)
        except ValidationError as error:
            raise NotADeadLetter(tuple(str(fault["loc"][0]) for fault in error.errors(include_input=False))) from None


def original_headers(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of the original message: all but the first of each name that ``to_headers`` writes."""
    return without_first(headers, _HEADERS.values())


def _header_name(field: str) -> str:
    return f"gasp-{field.replace('_', '-')}"


def _header_text(value: str | int | bool) -> str:  # noqa: FBT001 - a fact's value, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)


_HEADERS = {field.alias or name: _header_name(field.alias or name) for name, field in DeadLetter.model_fields.items()}
