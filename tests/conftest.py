"""Fixtures that every tier of tests may use. Servers start when the first test asks for them."""

from __future__ import annotations

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
