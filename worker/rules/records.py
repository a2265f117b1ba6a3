"""A record as it lies in Kafka, before anyone has looked inside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record, raw. ``timestamp_ms`` is the broker's or producer's epoch, or None where it has none.

    A value that was too large to be decompressed is None, and ``left_out_bytes`` is its size; otherwise that is 0.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    left_out_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return self.left_out_bytes or len(self.value or b"")

    @property
    def memory_bytes(self) -> int:
        """About what it holds in memory: value, key and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers

    @property
    def broker_time(self) -> datetime | None:
        """``timestamp_ms`` as UTC, or None if it is absent or no date that exists."""
        return moment(self.timestamp_ms)


def moment(timestamp_ms: int | None) -> datetime | None:
    """An epoch in milliseconds as UTC, or None if it is absent or no date that exists."""
    if timestamp_ms is None or timestamp_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
