"""Where review tasks are told and labels come from: the part of the settings for the human loop."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

KAFKA = "kafka"
WEBHOOK = "webhook"
CHANNELS = (KAFKA, WEBHOOK)

MIN_SECRET_CHARS = 16


class ReviewChannels(BaseModel):
    """The topics and the webhook of the human loop.

    Plain http is for this machine alone: what is posted holds questions and answers, and a signature hides nothing.
    """

    review_tasks_topic: str = Field(
        "gasp.review-tasks.v1", description="The topic to which review tasks are sent; empty: none is"
    )
    review_labels_topic: str = Field(
        "gasp.review-labels.v1", description="The topic from which labels are read; empty: none is"
    )
    review_webhook_url: SecretStr | None = Field(
        None,
        description="Where review tasks are posted as well: an https address, or http to this machine itself. "
        "Needs the secret",
    )
    review_webhook_secret: SecretStr | None = Field(
        None, validate_default=True, description="The secret that signs what is posted; 16 characters or more"
    )
    review_wait_s: float = Field(600.0, ge=0, description="A review task waits so long for its supporting passages")

    @property
    def review_channels(self) -> tuple[str, ...]:
        """The channels on which review tasks are told."""
        wanted = {KAFKA: self.review_tasks_topic, WEBHOOK: self.review_webhook_url}
        return tuple(channel for channel, where in wanted.items() if where)

    @field_validator("review_webhook_url")
    @classmethod
    def _encrypted(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or not url.get_secret_value():
            return None
        if not is_private(url.get_secret_value()):
            message = "must begin with https://, or with http:// and name this machine: localhost or 127.0.0.1"
            raise ValueError(message)
        return url

    @field_validator("review_webhook_secret")
    @classmethod
    def _signs(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if "review_webhook_url" not in info.data:
            return secret
        if (info.data["review_webhook_url"] is None) != (not secret):
            message = "GASP_REVIEW_WEBHOOK_URL and GASP_REVIEW_WEBHOOK_SECRET are needed together"
            raise ValueError(message)
        if secret and len(secret.get_secret_value()) < MIN_SECRET_CHARS:
            message = f"must have at least {MIN_SECRET_CHARS} characters"
            raise ValueError(message)
        return secret or None


def is_private(url: str) -> bool:
    """Whether nobody on the way can read what is posted there: it is encrypted, or does not leave this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host or "")))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what is there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
