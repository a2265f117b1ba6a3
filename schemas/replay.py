"""The contract ``gasp.replay.v1``: what a message that was replayed from the dead letters says of its past.

The message stays as it was. These facts travel as headers named ``gasp-replay…``, in front of the original headers.
They grow with no replay: the first place and time and the last reason are kept, and a count.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.headers import Headers, header_texts, without_first
from schemas.interaction import UtcDatetime
from schemas.reject_reason import RejectReason
from schemas.text import StorableText

MAX_COUNT = 1_000_000


class Replay(BaseModel):
    """How often a message was replayed, where it lay at first, and why it was dead the last time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1, le=MAX_COUNT, description="This replay is the how manieth.")
    topic: StorableText = Field(description="Where the message lay before it was ever replayed.")
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    timestamp_ms: int | None = Field(None, description="The epoch in milliseconds that the message had there.")
    reason: RejectReason = Field(description="Why it was a dead letter before this replay.")
    replayed_at: UtcDatetime

    def to_headers(self, original: Headers = ()) -> tuple[tuple[str, bytes | None], ...]:
        """Return these facts as headers, followed by ``original``: headers that hold no history of their own."""
        facts = self.model_dump(mode="json", exclude_none=True)
        own = ((header, str(facts[name]).encode()) for name, header in _HEADERS.items() if name in facts)
        return (*own, *original)

    @classmethod
    def from_headers(cls, headers: Headers) -> Self | None:
        """Read what ``to_headers`` wrote; the first header of a name counts. None for a message without history."""
        texts = header_texts(headers)
        facts = {name: texts[header] for name, header in _HEADERS.items() if header in texts}
        if not facts:
            return None
        try:
            return cls.model_validate_strings(facts)
        except ValidationError:
            return None


def without_history(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Return ``headers`` without the first of each name that ``Replay.to_headers`` writes."""
    return without_first(headers, _HEADERS.values())


_HEADERS = {
    "count": "gasp-replay-count",
    "topic": "gasp-replay-topic",
    "partition": "gasp-replay-partition",
    "offset": "gasp-replay-offset",
    "timestamp_ms": "gasp-replay-timestamp-ms",
    "reason": "gasp-replay-reason",
    "replayed_at": "gasp-replayed-at",
}
