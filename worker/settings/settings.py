"""The settings, read once from the environment (prefix ``GASP_``) and frozen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SettingsSourceError

from gasp_core.packaged import PACKAGED_MODEL
from schemas.interaction import MAX_APP_CHARS
from worker.errors import SettingsError
from worker.settings.channels import ReviewChannels
from worker.settings.detectors import DetectorChoice
from worker.settings.second_opinion import SecondOpinionChoice
from worker.settings.security import KafkaSecurity

PREFIX = "GASP_"


class Settings(KafkaSecurity, ReviewChannels, SecondOpinionChoice, BaseSettings):
    """Everything an operator may set. Each field is the environment variable ``GASP_<FIELD>``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    database_url: SecretStr = Field(description="PostgreSQL, as postgresql://user:password@host:5432/database")
    kafka_bootstrap_servers: str = Field(description="host:port[,host:port]")
    topic: str = Field("gasp.interactions.v1", description="Where exchanges are logged")
    dead_letter_topic: str = Field("gasp.dead-letters.v1", description="Where messages go that cannot be scored")
    consumer_group: str = "gasp-audit"

    model: str = Field(PACKAGED_MODEL, description="Causal language model: hub name, folder or the packaged one")
    model_revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    detector: DetectorChoice = Field(
        "auto", description="What verdicts go by: gap, jsd or fused; auto is fused if fitted to the model, else gap"
    )
    max_context_tokens: int = Field(131_072, ge=1, description="More is cut off and said on the row")
    max_answer_tokens: int | None = Field(None, ge=1, description="Default: what the model's window holds")
    max_batch_tokens: int | None = Field(None, ge=1, description="Tokens a forward pass; default by device")
    context_cache_bytes: int | None = Field(
        None, ge=0, description="Memory for contexts read lately, which later answers may share; default by device"
    )
    threads: int = Field(1, ge=1, description="CPU threads of the model; several workers use a CPU better")
    masked_attribution: bool = Field(
        default=False, description="Attribute by hiding passages: quicker, approximate, a scorer of its own"
    )

    max_message_bytes: int = Field(4 * 1024 * 1024, ge=1024, description="A larger message is a dead letter")
    batch_messages: int = Field(16, ge=1, le=1000, description="Messages scored and stored together")
    batch_bytes: int = Field(32 * 1024 * 1024, ge=1024, description="Fewer messages if they are larger together")
    first_start: Literal["earliest", "latest"] | AwareDatetime = Field(
        "earliest",
        description="Where a partition begins that was never read: an end, or a time such as 2026-11-30T00:00Z",
    )
    instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Static member of the group: a quick restart moves nothing",
    )
    default_app: str = Field(
        "default", pattern=r"\S", max_length=MAX_APP_CHARS, description="App of messages that name none"
    )
    session_timeout_s: float = Field(30.0, ge=1, description="A worker that is silent for so long loses its partitions")
    max_poll_interval_s: float = Field(300.0, ge=5)
    wedged_after_s: float = Field(300.0, ge=5, description="A poll loop that is silent for so long ends the process")
    work_timeout_s: float = Field(3600.0, ge=5, description="So does a batch or an attribution job that takes so long")
    http_host: str = "127.0.0.1"
    http_port: int | None = Field(
        None, ge=0, le=65_535, description="For /healthz, /readyz and /metrics; default: none"
    )

    attribution_share: float = Field(0.1, ge=0.0, lt=1.0, description="Share of model time kept for attribution")
    attribution_lease_s: float = Field(900.0, gt=0, description="A job that takes longer is given to another worker")
    attribution_max_attempts: int = Field(5, ge=1)
    log_level: str = "info"
    secrets_dir: Path | None = Field(None, description="Folder of files that stand for variables: gasp_database_url")

    @property
    def database(self) -> str:
        """The database's URL with its password, for those who connect. Never to be shown."""
        return self.database_url.get_secret_value()

    @field_validator("database_url")
    @classmethod
    def _postgres(cls, url: SecretStr) -> SecretStr:
        scheme, _, rest = url.get_secret_value().partition("://")
        if scheme not in {"postgresql", "postgres", "postgresql+psycopg"}:
            message = "must begin with postgresql://"
            raise ValueError(message)
        return SecretStr(f"postgresql+psycopg://{rest}")

    @field_validator("log_level")
    @classmethod
    def _level(cls, level: str) -> str:
        if level.lower() not in {"debug", "info", "warning", "error"}:
            message = "must be debug, info, warning or error"
            raise ValueError(message)
        return level.lower()


def read_settings(**overrides: object) -> Settings:
    """Read the environment, then the files of GASP_SECRETS_DIR; ``overrides`` win over both.

    Raises SettingsError with one line per variable that is wrong.
    """
    try:
        return Settings(_secrets_dir=_secrets_folder(), **overrides)  # type: ignore[arg-type]  # validated by the call itself
    except SettingsSourceError as error:
        raise SettingsError(f"{PREFIX}SECRETS_DIR: a file in it cannot be read as text ({error})") from None
    except ValidationError as error:
        lines = (f"{PREFIX}{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}" for item in error.errors())
        raise SettingsError("\n".join(lines)) from None


def _secrets_folder() -> Path | None:
    named = os.environ.get(f"{PREFIX}SECRETS_DIR")
    if named and not Path(named).is_dir():
        raise SettingsError(f"{PREFIX}SECRETS_DIR: there is no such folder")
    return Path(named) if named else None
