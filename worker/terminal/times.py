"""A time on the command line."""

from __future__ import annotations

from datetime import datetime

import typer

from schemas.timestamps import in_utc


def parse_time(text: str) -> datetime:
    """A time in ISO 8601, in UTC if it names no zone; a date alone is its midnight. Raises ValueError."""
    return in_utc(datetime.fromisoformat(text.strip()))


def time_option(text: str) -> datetime:
    """The parser of an option. Raises typer.BadParameter with an example of what is wanted."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(
            "a time in ISO 8601 is wanted, such as 2026-11-30T02:15 (UTC) or with +01:00"
        ) from error
