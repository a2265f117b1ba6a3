"""The servers of the integration tests, and a deployment for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.workers import Deployment


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin, so that the tests of another tier use the same servers."""
    config.pluginmanager.import_plugin("tests.servers")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model on disk, for worker processes."""
    from tests.models import save_model  # here: not every test has a model, and torch takes seconds to import

    return save_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def deploy(database_url: str, tiny_folder: Path, tmp_path: Path) -> Callable[..., Deployment]:
    """Makes a deployment on a broker."""

    def make(broker: Broker, **settings: object) -> Deployment:
        partitions = settings.pop("partitions", 1)
        url = str(settings.pop("database_url", database_url))
        return Deployment(broker, url, tiny_folder, tmp_path, partitions=int(str(partitions)), settings=settings)

    return make
