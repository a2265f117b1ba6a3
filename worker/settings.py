"""The settings, read once from the environment (prefix ``GASP_``) and frozen."""

from __future__ import annotations

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gasp_core.packaged import PACKAGED_MODEL
from schemas.interaction import MAX_APP_CHARS
from worker.errors import SettingsError

PREFIX = "GASP_"


class Settings(BaseSettings):
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
    default_app: str = Field(
        "default", pattern=r"\S", max_length=MAX_APP_CHARS, description="App of messages that name none"
    )
    session_timeout_s: float = Field(30.0, ge=1, description="A worker that is silent for so long loses its partitions")
    max_poll_interval_s: float = Field(300.0, ge=5)

    attribution_share: float = Field(0.1, ge=0.0, lt=1.0, description="Share of model time kept for attribution")
    attribution_lease_s: float = Field(900.0, gt=0, description="A job that takes longer is given to another worker")
    attribution_max_attempts: int = Field(5, ge=1)
    log_level: str = "info"

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
    """Read the environment; ``overrides`` win. Raises SettingsError with one line per variable that is wrong."""
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # validated by the call itself
    except ValidationError as error:
        lines = (f"{PREFIX}{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}" for item in error.errors())
        raise SettingsError("\n".join(lines)) from None
