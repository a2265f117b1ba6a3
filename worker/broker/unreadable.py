"""Finding the records that kafka-python cannot decode. It says that there are some, but not where."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError

from worker.broker.bounded import PIECE_BYTES, bound
from worker.broker.client import broker_error, connection_settings, is_understood, open_client

PROBE_TIMEOUT_S = 5.0
_SLICE_S = 0.1
_FETCH_WAIT_MS = 50

# How every batch begins, whatever its format: first offset, length of what follows, leader's epoch or checksum, format.
_BATCH_HEAD = struct.Struct(">qiib")
_LENGTH_ENDS_AT = 12
# In format 2: how far the last offset is from the first. Compaction leaves it as it was.
_LAST_DELTA = struct.Struct(">i")
_LAST_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets ``offset`` up to but not including ``next_offset`` of a partition, which cannot be decoded."""

    partition: int
    offset: int
    next_offset: int


def find_unreadable(
    bootstrap: str, topic: str, positions: Mapping[int, int], *, security: Mapping[str, object] | None
) -> Unreadable | None:
    """The first stretch that is met at one of ``positions`` (partition: offset), or None.

    Between the position and the stretch lie only offsets that hold no record. It ends with its batch, because what
    follows in the batch is hidden as well; the batch's header says where that is, so one fetch of a partition is
    enough. Looks with a consumer of its own, outside any group, because kafka-python cannot go on after such an error.
    Raises BrokerUnavailable or BrokerMisconfigured.
    """
    settings = {
        **connection_settings(bootstrap, "gasp-unreadable", security),
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "fetch_max_wait_ms": _FETCH_WAIT_MS,
        # Without a session every answer names every partition, also one that has nothing new.
        "enable_incremental_fetch_sessions": False,
        "metrics_enabled": False,
    }
    consumer, client = open_client(KafkaConsumer, settings)
    bound(consumer, PIECE_BYTES)
    try:
        for partition, position in sorted(positions.items()):
            stretch = _stretch_at(consumer, TopicPartition(topic, partition), position)
            if stretch is not None:
                return Unreadable(partition, *stretch)
    except Exception as error:
        raise broker_error(error, f"cannot read topic {topic}") from error
    finally:
        client.close()
    return None


def _stretch_at(consumer: KafkaConsumer, place: TopicPartition, position: int) -> tuple[int, int] | None:
    """The stretch, if what comes first from ``position`` on cannot be decoded; None also at the partition's end."""
    consumer.assign([place])
    while True:
        try:
            fetched, records = _fetch(consumer, place, position)
        except OffsetOutOfRangeError:
            return None
        try:
            if records.take(1):
                return None
        except Exception as error:
            if is_understood(error):
                raise
            first = max(position, records.next_fetch_offset)
            return _rest_of_batch(fetched.partition_data.records, first, fetched.partition_data.high_watermark)
        if records.next_fetch_offset == position:
            return None
        # Nothing but offsets that hold no record was fetched.
        position = records.next_fetch_offset


def _fetch(consumer: KafkaConsumer, place: TopicPartition, position: int) -> tuple[Any, Any]:
    """What the broker answers, and kafka-python's records of it, which are decoded as they are taken.

    Raises KafkaTimeoutError, and what kafka-python makes of an answer that is an error.
    """
    fetcher = consumer._fetcher  # noqa: SLF001 - nothing public gives the bytes
    consumer.seek(place, position)
    deadline = time.monotonic() + PROBE_TIMEOUT_S
    while time.monotonic() < deadline:
        answered = threading.Event()
        for future in fetcher.send_fetches():
            future.add_both(lambda _, answered=answered: answered.set())
        answered.wait(_SLICE_S)
        while fetcher._completed_fetches:  # noqa: SLF001 - as above
            fetched = fetcher._completed_fetches.popleft()  # noqa: SLF001 - as above
            # None for an answer that is to be asked for again, as when the leader has changed.
            records = fetcher._parse_fetched_data(fetched)  # noqa: SLF001 - as above
            if records is not None:
                return fetched, records
    raise KafkaTimeoutError("no answer to a fetch")


def _rest_of_batch(fetched: bytes, first: int, high_watermark: int) -> tuple[int, int]:
    """From ``first`` to the end of its batch, or all of the next batch if it lies between two.

    A broken header is not believed: the stretch ends before the next batch and the partition's end, and has one offset
    at the least.
    """
    batches = list(_extents(fetched))
    for number, (base, behind) in enumerate(batches):
        if behind > first:
            begin = max(first, base)
            later = [base for base, _ in batches[number + 1 :] if base > begin]
            return begin, max(begin + 1, min(behind, high_watermark, *later))
    return first, first + 1


def _extents(fetched: bytes) -> Iterator[tuple[int, int]]:
    """The first offset of each batch and the one behind it; a message of the formats before 2 is a batch of its own."""
    at = 0
    while at + _BATCH_HEAD.size <= len(fetched):
        base, length, _, version = _BATCH_HEAD.unpack_from(fetched, at)
        has_delta = version >= 2 and at + _LAST_DELTA_AT + _LAST_DELTA.size <= len(fetched)
        delta = _LAST_DELTA.unpack_from(fetched, at + _LAST_DELTA_AT)[0] if has_delta else 0
        yield base, base + delta + 1
        at += _LENGTH_ENDS_AT + max(length, 1)
