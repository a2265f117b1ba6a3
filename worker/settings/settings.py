"""The settings, read once from the environment (prefix ``GASP_``) and frozen."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SettingsSourceError

from worker.errors import SettingsError
from worker.settings.channels import ReviewChannels
from worker.settings.intake import BatchLimits, Connections, Intake
from worker.settings.process import ProcessSettings
from worker.settings.scoring import AttributionChoice, ScoringChoice
from worker.settings.second_opinion import SecondOpinionChoice
from worker.settings.security import KafkaSecurity

PREFIX = "GASP_"


class Settings(
    ProcessSettings,
    SecondOpinionChoice,
    ReviewChannels,
    AttributionChoice,
    ScoringChoice,
    BatchLimits,
    Intake,
    KafkaSecurity,
    Connections,
    BaseSettings,
):
    """Everything an operator may set. Each field is the environment variable ``GASP_<FIELD>``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)


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
