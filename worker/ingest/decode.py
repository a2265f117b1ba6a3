"""From a raw record to what it holds, or to the reason why it holds nothing."""

from __future__ import annotations

from datetime import datetime

from schemas.decoding import Reading, Rejected, decode_payload
from schemas.encodings.schema import NO_SCHEMAS, Schemas
from schemas.formats import AUTO
from schemas.reject_reason import RejectReason
from worker.rules.records import Record


def decode(
    record: Record,
    *,
    max_message_bytes: int,
    default_app: str,
    received_at: datetime,
    format_name: str = AUTO,
    schemas: Schemas = NO_SCHEMAS,
) -> Reading:
    """Read the record's value; see ``schemas.decoding.decode_payload``.

    Raises nothing, whatever the bytes, but SchemasUnavailable and SettingsError where a schema has to be looked up.
    """
    if record.left_out_bytes:
        return Reading((left_out(record, max_message_bytes),))
    return decode_payload(
        record.value,
        record.headers,
        max_bytes=max_message_bytes,
        default_app=default_app,
        received_at=received_at,
        has_key=record.key is not None,
        format_name=format_name,
        schemas=schemas,
    )


def left_out(record: Record, max_message_bytes: int) -> Rejected:
    """Why a record is none whose value was too large to be decompressed, or whose key or headers were."""
    fault = f"{record.size} bytes" if record.size > max_message_bytes else "key or headers too large"
    return Rejected(RejectReason.TOO_LARGE, f"{fault}, the limit is {max_message_bytes}")
