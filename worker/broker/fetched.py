"""What kafka-python fetched, as a record of ours."""

from __future__ import annotations

from typing import Any

from worker.rules.records import Record


def record_of(fetched: Any) -> Record:  # noqa: ANN401 - kafka-python's ConsumerRecord
    """The record as it lies in Kafka; a timestamp of -1 means that it has none."""
    return Record(
        topic=fetched.topic,
        partition=fetched.partition,
        offset=fetched.offset,
        key=fetched.key,
        value=fetched.value,
        headers=tuple(fetched.headers),
        timestamp_ms=None if fetched.timestamp == -1 else fetched.timestamp,
    )
