"""What is read, and how much at a time: the part of the settings for the topics and the consumer group."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, BaseModel, Field, SecretStr, field_validator


class DatabaseConnection(BaseModel):
    """Where the database is. Nothing runs without it, so it has no default."""

    database_url: SecretStr = Field(
        description="The PostgreSQL database, as postgresql://user:password@host:5432/database"
    )

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


class BrokerConnection(BaseModel):
    """Where the broker is. Commands that look only into the database do without it."""

    kafka_bootstrap_servers: str = Field(
        description="The Kafka brokers to ask first, as host:port, with commas between several"
    )


class Intake(BaseModel):
    """Which topics are read and written, and where reading begins."""

    topic: str = Field(
        "gasp.interactions.v1",
        description="The topic to which exchanges are logged, or several with commas between. Files are replayed into "
        "the first",
    )
    dead_letter_topic: str = Field(
        "gasp.dead-letters.v1", description="The topic for messages that can never be scored"
    )
    consumer_group: str = Field(
        "gasp-audit",
        description="The consumer group that workers share. Labels are read in the group of this name with -labels "
        "behind it, and each further topic in that with - and the topic behind it",
    )
    first_start: Literal["earliest", "latest"] | AwareDatetime = Field(
        "earliest",
        description="Where the partitions that a topic has at the very first start begin: at their first message, at "
        "their end, or at a time such as 2026-11-30T00:00Z. Partitions that are added later, and those of a topic that "
        "is created again, begin at their first message",
    )
    instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="A name for this worker, different for each. It makes the worker a static member of the group: a "
        "restart within GASP_SESSION_TIMEOUT_S then moves no partition",
    )

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of exchanges, at least one."""
        return tuple(name.strip() for name in self.topic.split(","))

    @property
    def first_topic(self) -> str:
        """The topic of those that what is sent goes to."""
        return self.topics[0]

    @field_validator("topic")
    @classmethod
    def _names(cls, topic: str) -> str:
        names = [name.strip() for name in topic.split(",")]
        if not all(names) or len({*names}) < len(names):
            message = "wants a topic, or several different ones with commas between"
            raise ValueError(message)
        return ",".join(names)


class BatchLimits(BaseModel):
    """How much is read at a time, and how long a worker may be silent."""

    batch_messages: int = Field(16, ge=1, le=1000, description="Messages that are scored and stored together, at most")
    batch_bytes: int = Field(
        32 * 1024 * 1024, ge=1024, description="A batch has fewer messages if they are larger together"
    )
    session_timeout_s: float = Field(
        30.0,
        ge=1,
        description="Kafka gives the partitions of a worker that is silent for so long to others",
    )
    max_poll_interval_s: float = Field(
        300.0, ge=5, description="A worker that fetches nothing for so long leaves its group"
    )
