"""Fixtures that every tier of tests may use. Servers start when the first test asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

from tests.brokers import apache, apache_node, broker, group_on, tansu
from tests.databases import database_url, empty_database_url, postgres_server, store, template_database

__all__ = [
    "apache",
    "apache_node",
    "broker",
    "database_url",
    "empty_database_url",
    "group_on",
    "postgres_server",
    "store",
    "tansu",
    "template_database",
]

# Examples run on shared machines, where a slow one says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def fresh_logs() -> Iterator[None]:
    """No test logs into the stream of one before it, which is closed by then."""
    yield
    structlog.reset_defaults()
