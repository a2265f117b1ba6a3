"""Which database a URL means, read the same way by the migrations and the worker."""

from __future__ import annotations

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

_SCHEMES = {"postgres", "postgresql", "postgresql+psycopg"}


def engine_url(url: str) -> URL:
    """Read ``postgresql://user:password@host:port/database?option=…`` and name the driver psycopg.

    Raises ValueError, without quoting the URL, if it is no PostgreSQL URL.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(
            "the database URL (GASP_DATABASE_URL) cannot be read; expected postgresql://user:password@host/database"
        ) from None
    if parsed.drivername not in _SCHEMES:
        raise ValueError("the database URL (GASP_DATABASE_URL) must start with postgresql://")
    return parsed.set(drivername="postgresql+psycopg")


def without_secrets(text: str, url: URL) -> str:
    """``text`` with the URL's password replaced wherever it occurs, for messages of the driver."""
    asked = url.query.get("password", ())
    passwords = [url.password or "", *((asked,) if isinstance(asked, str) else asked)]
    for password in filter(None, passwords):
        text = text.replace(password, "***")
    return text
