"""What a command begins with: settings read, logs set up, the store opened.

Whatever takes long to import is imported here when a command runs: ``--help`` and the refusal of a wrong argument do
not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.settings.settings import DatabaseSettings, Settings
    from worker.store.store import Store


def opened_settings() -> Settings:
    """Read the settings and send the logs to standard error, at their level. Raises SettingsError."""
    from worker.runtime.logs import configure_logs
    from worker.settings.settings import read_settings

    settings = read_settings()
    configure_logs(settings.log_level)
    return settings


def opened_database_settings() -> DatabaseSettings:
    """The same for what looks into the database alone, and needs no broker."""
    from worker.runtime.logs import configure_logs
    from worker.settings.settings import read_database_settings

    settings = read_database_settings()
    configure_logs(settings.log_level)
    return settings


@contextmanager
def opened_store(command: str, settings: Settings | None = None) -> Iterator[Store]:
    """The store of the settings (None: read those of the database now), closed on leaving.

    PostgreSQL's ``application_name`` is ``gasp-`` and the command. Raises SettingsError for bad settings,
    StoreNotReady for what is no URL, WorkerError for a schema that this version cannot work on.
    """
    with opened_database(command, (settings or opened_database_settings()).database) as store:
        yield store


@contextmanager
def opened_database(command: str, url: str) -> Iterator[Store]:
    """The same of a database by its URL."""
    from worker.store.schema import require_usable_schema
    from worker.store.store import open_store

    with open_store(url, application_name=f"gasp-{command}") as store:
        require_usable_schema(store.server)
        yield store
