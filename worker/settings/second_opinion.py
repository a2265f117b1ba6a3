"""Who gives second opinions: the part of the settings for them. Nobody, unless one is chosen."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from worker.settings.channels import is_private


class SecondOpinionChoice(BaseModel):
    """A classifier that runs beside the scorer, or a chat endpoint; not both.

    Plain http is for this machine alone: what is posted holds questions and answers.
    """

    second_opinion_model: str | None = Field(
        None, description="Cross-encoder or NLI classifier: hub name or folder. Default: no second opinions"
    )
    second_opinion_url: SecretStr | None = Field(
        None,
        description="Instead: an OpenAI-compatible endpoint, such as https://host/v1/chat/completions; http to this "
        "machine itself",
    )
    second_opinion_name: str | None = Field(
        None, max_length=200, validate_default=True, description="The endpoint's name of its model; needed with the URL"
    )
    second_opinion_api_key: SecretStr | None = Field(None, description="The endpoint's key, if it wants one")
    second_opinion_timeout_s: float = Field(
        15.0, gt=0, le=600, description="For one answer of the endpoint; beyond 20 a stop may not wait for it"
    )
    second_opinion_daily: int = Field(1000, ge=0, description="Sentences a day (UTC) that are asked about")

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
