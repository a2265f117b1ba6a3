"""Fixtures that every tier of tests may use."""

from __future__ import annotations

from hypothesis import settings

from tests.integration.brokers import *  # noqa: F403 - fixtures are found by their names in a conftest

# Examples run on shared machines, where a slow one says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
