"""The settings, read once from the environment (prefix ``GASP_``) and frozen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SettingsSourceError

from worker.errors import SettingsError
from worker.settings.channels import ReviewChannels
from worker.settings.documents import DocumentStoreChoice
from worker.settings.exports import ExportChoice
from worker.settings.intake import BatchLimits, BrokerConnection, DatabaseConnection, Intake
from worker.settings.page import PageChoice
from worker.settings.process import ProcessSettings
from worker.settings.reading import Reading
from worker.settings.schema_registry import SchemaRegistryChoice
from worker.settings.scoring import AttributionChoice, ScoringChoice
from worker.settings.second_opinion import SecondOpinionChoice
from worker.settings.security import KafkaSecurity
from worker.settings.traces import TraceChoice

PREFIX = "GASP_"
_OTHER_TOPICS = ("dead_letter_topic", "review_tasks_topic", "review_labels_topic")
_CONFIG = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)


class DatabaseSettings(ProcessSettings, DatabaseConnection, BaseSettings):
    """What a command needs that looks only into the database. The variables are those of ``Settings``."""

    model_config = _CONFIG


class PageSettings(ProcessSettings, PageChoice, DatabaseConnection, BaseSettings):
    """What the review page needs."""

    model_config = _CONFIG


class ReadingSettings(ProcessSettings, Reading, SchemaRegistryChoice, BaseSettings):
    """What a command needs that reads messages of files."""

    model_config = _CONFIG


class BrokerSettings(ReadingSettings, KafkaSecurity, BrokerConnection):
    """What a command needs that reads messages of topics, and no database."""

    model_config = _CONFIG


class Settings(
    ProcessSettings,
    SecondOpinionChoice,
    PageChoice,
    ReviewChannels,
    AttributionChoice,
    ScoringChoice,
    ExportChoice,
    DocumentStoreChoice,
    SchemaRegistryChoice,
    TraceChoice,
    BatchLimits,
    Reading,
    Intake,
    KafkaSecurity,
    BrokerConnection,
    DatabaseConnection,
    BaseSettings,
):
    """Everything an operator may set. Each field is the environment variable ``GASP_<FIELD>``."""

    model_config = _CONFIG

    @model_validator(mode="after")
    def _formats_of_our_topics(self) -> Self:
        """Else a misspelt topic would be read as anything."""
        strangers = [topic for topic in self.formats_by_topic if topic not in self.topics]
        if strangers:
            raise PydanticCustomError(
                "format_of_no_topic",
                "GASP_FORMAT: it names a topic that GASP_TOPIC does not: {topic}",
                {"topic": strangers[0]},
            )
        return self

    @model_validator(mode="after")
    def _each_topic_for_one_thing(self) -> Self:
        """Else a dead letter would be read as a message and become a dead letter, without end."""
        used: dict[str, str] = dict.fromkeys(self.topics, "topic")
        for field in _OTHER_TOPICS:
            topic = getattr(self, field)
            if topic and topic in used:
                raise PydanticCustomError(
                    "one_topic_for_two",
                    "{field}: it names the same topic as {other}; each needs a topic of its own",
                    {"field": _variable(field), "other": _variable(used[topic])},
                )
            used[topic] = field
        return self


AnySettings = TypeVar("AnySettings", Settings, DatabaseSettings, PageSettings, ReadingSettings, BrokerSettings)


def read_settings(**overrides: object) -> Settings:
    """Read the environment, then the files of GASP_SECRETS_DIR; ``overrides`` win over both.

    Raises SettingsError with one line per variable that is wrong.
    """
    return _read(Settings, **overrides)


def read_database_settings() -> DatabaseSettings:
    """Read only what a command needs that looks into the database alone. Raises SettingsError as above."""
    return _read(DatabaseSettings)


def read_page_settings() -> PageSettings:
    """Read only what the review page needs. Raises SettingsError as above."""
    return _read(PageSettings)


def read_reading_settings() -> ReadingSettings:
    """Read only what a command needs that reads messages of files. Raises SettingsError as above."""
    return _read(ReadingSettings)


def read_broker_settings() -> BrokerSettings:
    """Read only what a command needs that reads messages of topics. Raises SettingsError as above."""
    return _read(BrokerSettings)


def _read(kind: type[AnySettings], **overrides: object) -> AnySettings:
    try:
        return kind(_secrets_dir=_secrets_folder(), **overrides)  # type: ignore[arg-type]  # validated by the call itself
    except SettingsSourceError as error:
        raise SettingsError(f"{PREFIX}SECRETS_DIR: a file in it cannot be read as text ({error})") from None
    except ValidationError as error:
        raise SettingsError("\n".join(_line(item) for item in error.errors())) from None


def _line(item: ErrorDetails) -> str:
    """One problem. What is wrong with several settings together names them itself."""
    field = "_".join(map(str, item["loc"]))
    return f"{_variable(field)}: {item['msg']}" if field else item["msg"]


def _variable(field: str) -> str:
    return f"{PREFIX}{field.upper()}"


def _secrets_folder() -> Path | None:
    named = os.environ.get(f"{PREFIX}SECRETS_DIR")
    if named and not Path(named).is_dir():
        raise SettingsError(f"{PREFIX}SECRETS_DIR: there is no such folder")
    return Path(named) if named else None
