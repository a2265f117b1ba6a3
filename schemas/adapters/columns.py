"""Columns of database rows that hold JSON, which change data capture writes as text."""

from __future__ import annotations

from schemas.adapters.flat import FLAT_NAMES
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject, parse_json

# Texts whatever they look like.
_TEXTS = {*FLAT_NAMES.question, *FLAT_NAMES.answer, *FLAT_NAMES.interaction_id, *FLAT_NAMES.app}


def with_json_columns(row: JsonObject, *, spelled: bool = False) -> JsonObject:
    """Return the row with arrays and objects in place of the texts that are such, save in columns that hold texts.

    ``spelled`` as in ``parse_json``.
    """
    read = dict(row)
    for name, value in row.items():
        if isinstance(value, str) and name not in _TEXTS and value[:1] in ("[", "{"):
            try:
                read[name] = parse_json(value.encode(), spelled=spelled).value
            except UnusablePayload:
                # A text that begins like one.
                continue
    return read
