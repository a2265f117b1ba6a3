"""The names that a topic's format may be set to, and what setting one means."""

from __future__ import annotations

from schemas.adapters import ADAPTERS, adapter_for
from schemas.adapters.adapter import Adapter
from schemas.adapters.fields import wrong_shape
from schemas.encodings.schema import SchemaKind
from schemas.errors import UnusablePayload
from schemas.headers import Headers
from schemas.payload import JsonObject

AUTO = "auto"

# What a value is encoded in, where JSON that happens to be in the bytes is not to be believed.
ENCODINGS: tuple[str, ...] = (SchemaKind.AVRO.value, SchemaKind.PROTOBUF.value)

FORMATS: tuple[str, ...] = (AUTO, *ENCODINGS, *dict.fromkeys(adapter.name for adapter in ADAPTERS))
"""``auto``, by which each message is known by what it holds; or an adapter's name, and then only that one reads.

Whatever the format, compression, envelopes and encodings come off by what the bytes are. ``avro`` and ``protobuf`` say
that the values are that and nothing else, and leave it to what is in them which adapter reads.
"""


def encoding_of(format_name: str) -> SchemaKind | None:
    """Return the encoding that a format is, or None for an adapter's, and for ``auto``."""
    return SchemaKind(format_name) if format_name in ENCODINGS else None


def reader_of(row: JsonObject, headers: Headers, format_name: str) -> Adapter:
    """Return the adapter that reads the row. Raises UnusablePayload (wrong_shape) if none does, or not the one set."""
    if format_name in (AUTO, *ENCODINGS):
        return adapter_for(row, headers)
    adapter = next(adapter for adapter in ADAPTERS if adapter.name == format_name)
    if not adapter.matches(row, headers):
        raise wrong_shape(format_name, f"not of this format, which is the one that is set; {_otherwise(row, headers)}")
    return adapter


def _otherwise(row: JsonObject, headers: Headers) -> str:
    """What would become of the row if it were known by what it holds."""
    try:
        return f"it looks like {adapter_for(row, headers).name}"
    except UnusablePayload as unusable:
        return unusable.detail
