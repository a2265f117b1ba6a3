"""The database of a command: settings read, logs set up, the store opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from worker.runtime.logs import configure_logs
from worker.settings.settings import read_settings

if TYPE_CHECKING:
    from worker.store.store import Store


@contextmanager
def opened_store(command: str) -> Iterator[Store]:
    """The store of the settings, closed on leaving. PostgreSQL's ``application_name`` is ``gasp-`` and the command.

    Raises SettingsError for bad settings and StoreNotReady for what is no URL.
    """
    from worker.store.store import open_store  # SQLAlchemy, which a refused argument can spare

    settings = read_settings()
    configure_logs(settings.log_level)
    with open_store(settings.database, application_name=f"gasp-{command}") as store:
        yield store
