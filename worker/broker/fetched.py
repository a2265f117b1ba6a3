"""What kafka-python fetched, as a record of ours."""

from __future__ import annotations

from typing import Any

from worker.broker.bounded import LeftOut
from worker.rules.records import Record


def record_of(fetched: Any) -> Record:  # noqa: ANN401 - kafka-python's ConsumerRecord
    """The record as it lies in Kafka; a timestamp of -1 means that it has none."""
    left_out_bytes = fetched.value.size if isinstance(fetched.value, LeftOut) else 0
    return Record(
        topic=fetched.topic,
        partition=fetched.partition,
        offset=fetched.offset,
        key=fetched.key,
        value=None if left_out_bytes else fetched.value,
        headers=tuple(fetched.headers),
        timestamp_ms=None if fetched.timestamp == -1 else fetched.timestamp,
        left_out_bytes=left_out_bytes,
    )
