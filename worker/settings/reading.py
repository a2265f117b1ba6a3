"""How messages are read: the part of the settings that says what bytes mean."""

from __future__ import annotations

from pydantic import BaseModel, Field

from schemas.interaction import MAX_APP_CHARS


class Reading(BaseModel):
    """How large a message may be, and what stands in for what it leaves out."""

    default_app: str = Field(
        "default", pattern=r"\S", max_length=MAX_APP_CHARS, description="The app of messages that name none"
    )
    max_message_bytes: int = Field(
        4 * 1024 * 1024, ge=1024, description="A larger message is a dead letter; a larger review task is cut"
    )
