"""The servers of the integration tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin, so that the tests of another tier use the same servers."""
    config.pluginmanager.import_plugin("tests.servers")
