"""From a raw record to an interaction, or to the reason why it is none."""

from __future__ import annotations

from datetime import datetime

from schemas.decoding import Decoded, Rejected, Skipped, decode_payload
from worker.rules.records import Record


def decode(
    record: Record, *, max_message_bytes: int, default_app: str, received_at: datetime
) -> Decoded | Rejected | Skipped:
    """Read the record's value. Never raises, whatever the bytes; see ``schemas.decoding.decode_payload``."""
    return decode_payload(
        record.value,
        record.headers,
        max_bytes=max_message_bytes,
        default_app=default_app,
        received_at=received_at,
        has_key=record.key is not None,
    )
