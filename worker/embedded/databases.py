"""Databases on the embedded server: created, copied and dropped through its own psql."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from worker.embedded.errors import EmbeddedPostgresError
from worker.embedded.programs import program, run


def create_database(url: str, name: str, *, template: str = "template1") -> str:
    """Create the database ``name`` beside the one in ``url`` as a copy of ``template``; return its URL.

    Nobody may be connected to the template. Names are lower-case letters, digits and underscores (ValueError).
    Raises EmbeddedPostgresError if the name is taken.
    """
    _query(url, f'CREATE DATABASE "{_checked(name)}" TEMPLATE "{_checked(template)}"')
    return _with_database(url, name)


def ensure_database(url: str, name: str) -> str:
    """Like create_database without a template, but content with a database that is already there."""
    exists = _query(url, f"SELECT 1 FROM pg_database WHERE datname = '{_checked(name)}'")  # noqa: S608 - name is checked
    return _with_database(url, name) if exists.strip() else create_database(url, name)


def drop_database(url: str, name: str) -> None:
    """Drop the database ``name`` if it exists, ending its connections. Raises EmbeddedPostgresError."""
    _query(url, f'DROP DATABASE IF EXISTS "{_checked(name)}" WITH (FORCE)')


def psql_command(url: str) -> list[str]:
    """The command line that opens the wheel's psql on the URL of an embedded database."""
    return [str(program("psql")), "--no-psqlrc", "--dbname", url.replace("postgresql+psycopg://", "postgresql://", 1)]


def _query(url: str, sql: str) -> str:
    done = run([*psql_command(url), "--quiet", "--tuples-only", "--no-align", "--command", sql])
    if done.returncode:
        raise EmbeddedPostgresError(done.stderr.strip())
    return done.stdout


def _checked(name: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
        raise ValueError("a database name is lower-case letters, digits and underscores")
    return name


def _with_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
