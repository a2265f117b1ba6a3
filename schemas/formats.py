"""The names that a topic's format may be set to, and what setting one means."""

from __future__ import annotations

from schemas.adapters import ADAPTERS, adapter_for
from schemas.adapters.adapter import Adapter
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject

AUTO = "auto"

FORMATS: tuple[str, ...] = (AUTO, *dict.fromkeys(adapter.name for adapter in ADAPTERS))
"""``auto``, by which each message is known by what it holds; or an adapter's name, and then only that one reads.

Whatever the format, compression, envelopes and encodings come off by what the bytes are.
"""


def reader_of(row: JsonObject, headers: Headers, format_name: str) -> Adapter:
    """Return the adapter that reads the row. Raises UnusablePayload (wrong_shape) if none does, or not the one set."""
    if format_name == AUTO:
        return adapter_for(row, headers)
    adapter = next(adapter for adapter in ADAPTERS if adapter.name == format_name)
    if not adapter.matches(row, headers):
        raise wrong_shape(format_name, "not of this format, which is the one that is set")
    return adapter
