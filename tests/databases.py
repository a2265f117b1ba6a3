"""A PostgreSQL server for the session, a migrated template, and a database of its own for every test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from migrations.upgrade import upgrade
from worker.embedded.databases import create_database
from worker.embedded.postgres import embedded_postgres
from worker.store.store import Store, open_store

_TEMPLATE = "migrated"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of the server's own database. Not below pytest's directory, which only its owner may enter."""
    directory = Path(tempfile.mkdtemp(prefix="gasp-tests-"))
    try:
        with embedded_postgres(directory, durable=False) as url:
            yield url
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def copy_database(url: str, name: str, template: str = "template1") -> str:
    """As ``create_database``, over a connection and by copying files: a quarter of the time, for every test."""
    statement = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
    _run(url, sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(template)))
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def drop_copy(url: str, name: str) -> None:
    """As ``drop_database``, over a connection."""
    _run(url, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _run(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def template_database(postgres_server: str) -> str:
    """The name of a database that has been migrated and that nobody is connected to."""
    upgrade(create_database(postgres_server, _TEMPLATE))
    return _TEMPLATE


@pytest.fixture
def empty_database_url(postgres_server: str) -> Iterator[str]:
    """A new database without any table."""
    name = f"empty_{next(_numbers)}"
    yield copy_database(postgres_server, name)
    drop_copy(postgres_server, name)


@pytest.fixture
def database_url(postgres_server: str, template_database: str) -> Iterator[str]:
    """A new migrated database without rows."""
    name = f"test_{next(_numbers)}"
    yield copy_database(postgres_server, name, template_database)
    drop_copy(postgres_server, name)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on a new migrated database."""
    opened = open_store(database_url, application_name="gasp-test")
    yield opened
    opened.close()
