"""How messages are read: the part of the settings that says what bytes mean."""

from __future__ import annotations

from pydantic import BaseModel, Field, field_validator

from schemas.formats import AUTO, FORMATS
from schemas.interaction import MAX_APP_CHARS


class Reading(BaseModel):
    """What messages are, how large they may be, and what stands in for what they leave out."""

    format: str = Field(
        AUTO,
        description="What the messages are. auto knows each by what it holds; the name of a format (docs/messages.md) "
        "takes nothing else. For one topic of several: topic=name, with commas between several of these",
    )
    default_app: str = Field(
        "default", pattern=r"\S", max_length=MAX_APP_CHARS, description="The app of messages that name none"
    )
    max_message_bytes: int = Field(
        4 * 1024 * 1024, ge=1024, description="A larger message is a dead letter; a larger review task is cut"
    )

    @property
    def formats_by_topic(self) -> dict[str, str]:
        """The formats of those topics that are named."""
        return _split(self.format)[1]

    def format_of(self, topic: str | None = None) -> str:
        """The format of a topic's messages, one of ``FORMATS``; None is any other source."""
        default, by_topic = _split(self.format)
        return by_topic.get(topic or "", default)

    @field_validator("format")
    @classmethod
    def _known(cls, text: str) -> str:
        default, by_topic = _split(text)
        unknown = [name for name in (default, *by_topic.values()) if name not in FORMATS]
        if unknown:
            message = f"no such format: {unknown[0]!r}; there are {', '.join(FORMATS)}"
            raise ValueError(message)
        return text


def _split(text: str) -> tuple[str, dict[str, str]]:
    """The format of all topics that are not named, and those of the named ones."""
    default, by_topic = AUTO, dict[str, str]()
    for part in text.split(","):
        topic, mark, name = part.rpartition("=")
        if mark:
            by_topic[topic.strip()] = name.strip()
        else:
            default = name.strip()
    return default, by_topic
