"""Which characters a text may hold: those that PostgreSQL can store."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, JsonValue
from pydantic_core import PydanticCustomError

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# PostgreSQL stores neither NUL nor half of a surrogate pair, in text or in jsonb.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def replace_unstorable(text: str) -> str:
    """Replace NUL and lone surrogates one for one, so that every later offset still points at its character."""
    return UNSTORABLE.sub(REPLACEMENT, text)


def _check_text(text: str) -> str:
    if UNSTORABLE.search(text):
        raise PydanticCustomError("unstorable_text", "must hold no NUL and no lone surrogate")
    return text


def _check_json(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    pending: list[JsonValue] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending.extend(node.keys())
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, str):
            _check_text(node)
    return value


STORABLE = AfterValidator(_check_text)

StorableText = Annotated[str, STORABLE]
"""Text without NUL and without lone surrogates."""

StorableJson = Annotated[dict[str, JsonValue], AfterValidator(_check_json)]
"""A JSON object whose numbers are finite and whose strings and keys are storable."""
