"""Who gives second opinions: the part of the settings for them. Nobody, unless one is chosen."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from worker.settings.channels import is_private


class SecondOpinionChoice(BaseModel):
    """A classifier that runs beside the scorer, or a chat endpoint; not both.

    Plain http is for this machine alone: what is posted holds questions and answers.
    """

    second_opinion_model: str | None = Field(
        None,
        description="A classifier that judges flagged sentences as well: a cross-encoder or NLI model, by hub name or "
        "folder. Without it and the URL there are no second opinions",
    )
    second_opinion_url: SecretStr | None = Field(
        None,
        description="Instead of a classifier: an OpenAI-compatible chat endpoint, such as "
        "https://host/v1/chat/completions, or http to this machine itself",
    )
    second_opinion_name: str | None = Field(
        None,
        max_length=200,
        validate_default=True,
        description="The model to ask for at the endpoint; needed with the URL",
    )
    second_opinion_api_key: SecretStr | None = Field(None, description="The key for the endpoint, if it asks for one")
    second_opinion_timeout_s: float = Field(
        15.0,
        gt=0,
        le=600,
        description="The time for one answer of the endpoint. A stop of the worker does not wait longer than 20 s",
    )
    second_opinion_daily: int = Field(
        1000, ge=0, description="Sentences that are asked about on one day (UTC), at most"
    )

    @field_validator("second_opinion_model", "second_opinion_api_key")
    @classmethod
    def _chosen(cls, value: str | SecretStr | None) -> str | SecretStr | None:
        return value or None

    @field_validator("second_opinion_url")
    @classmethod
    def _endpoint_encrypted(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if url is None or not url.get_secret_value():
            return None
        if not is_private(url.get_secret_value()):
            message = "must begin with https://, or with http:// and name this machine: localhost or 127.0.0.1"
            raise ValueError(message)
        if info.data.get("second_opinion_model"):
            message = "GASP_SECOND_OPINION_MODEL is set as well; choose one"
            raise ValueError(message)
        return url

    @field_validator("second_opinion_name")
    @classmethod
    def _endpoint_named(cls, name: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("second_opinion_url") is not None and not name:
            message = "is needed with GASP_SECOND_OPINION_URL"
            raise ValueError(message)
        return name or None
