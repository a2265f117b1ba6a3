"""Readers of single values: each returns what it can make of a JSON value, or None."""

from __future__ import annotations

import math
from contextlib import suppress

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload
from schemas.payload import parse_json

# Up to here a float holds every integer exactly. Beyond it, two different ids could read the same.
_MAX_EXACT_FLOAT = 2.0**53
_MAX_NUMBER_CHARS = 64
_JSON_BEGINS = ("{", "[", '"')


def as_anything(value: JsonValue) -> JsonValue:
    """Return the value as it is."""
    return value


def as_text(value: JsonValue) -> str | None:
    """Return a string that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def as_object(value: JsonValue) -> JsonObject | None:
    """Return an object."""
    return value if isinstance(value, dict) else None


def as_identifier(value: JsonValue) -> str | None:
    """Return an id as text: a string that is not blank, or a number that is exactly an integer."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_FLOAT:
        return str(int(value))
    return str(value) if isinstance(value, int) else as_text(value)


def as_number(value: JsonValue) -> float | None:
    """Return a finite number, also one written as a string."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str) and len(value) <= _MAX_NUMBER_CHARS:
        with suppress(ValueError):
            number = float(value)
    return number if math.isfinite(number) else None


def as_parsed(value: JsonValue) -> JsonValue:
    """Return what JSON in a string says, where it is an object, a list or a string; else the value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(_JSON_BEGINS):
        return value
    try:
        return parse_json(value.encode()).value
    except UnusablePayload:
        return value


def merged(metadata: JsonObject, others: JsonObject) -> JsonObject:
    """Return the metadata with the other fields added. A name that is taken gets ``row.`` in front."""
    result = dict(metadata)
    for name, value in others.items():
        free = name
        while free in result:
            free = f"row.{free}"
        result[free] = value
    return result
