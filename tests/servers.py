"""The fixtures of servers, which start when the first test of a process asks for them.

A plugin rather than a part of the upper conftest: tests without servers import neither Kafka nor SQL.
"""

from __future__ import annotations

from tests.brokers import apache, apache_node, broker, group_on, impatient, own_apache, tansu
from tests.databases import database_url, empty_database_url, postgres_server, store, template_database

__all__ = [
    "apache",
    "apache_node",
    "broker",
    "database_url",
    "empty_database_url",
    "group_on",
    "impatient",
    "own_apache",
    "postgres_server",
    "store",
    "tansu",
    "template_database",
]
