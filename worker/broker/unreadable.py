"""Finding the records that kafka-python cannot decode. It says that there are some, but not where."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from worker.broker.client import broker_error, connection_settings, is_understood, open_client

PROBE_TIMEOUT_S = 5.0
_SLICE_MS = 200


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets ``offset`` up to but not including ``next_offset`` of a partition, which cannot be decoded."""

    partition: int
    offset: int
    next_offset: int


def find_unreadable(
    bootstrap: str, topic: str, positions: Mapping[int, int], *, security: Mapping[str, object] | None
) -> Unreadable | None:
    """The first stretch that begins at one of ``positions`` (partition: offset), or None.

    Looks with a consumer of its own for each step, outside any group, because kafka-python cannot go on after such
    an error. It steps offset by offset, since what follows in the same batch is hidden as well and the batch's end is
    not told: milliseconds each. Raises BrokerUnavailable or BrokerMisconfigured.
    """
    settings = {
        **connection_settings(bootstrap, "gasp-unreadable", security),
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "metrics_enabled": False,
    }
    for partition, offset in sorted(positions.items()):
        place = TopicPartition(topic, partition)
        end = offset
        while not _decodes(settings, place, end):
            end += 1
        if end > offset:
            return Unreadable(partition, offset, end)
    return None


def _decodes(settings: Mapping[str, Any], place: TopicPartition, offset: int) -> bool:
    """Whether the record at ``offset``, or the next one there is, can be decoded. True at the end of the partition."""
    consumer, client = open_client(KafkaConsumer, settings)
    deadline = time.monotonic() + PROBE_TIMEOUT_S
    try:
        consumer.assign([place])
        consumer.seek(place, offset)
        # A known high watermark means that a fetch was answered; it held no record if none was returned.
        while not consumer.poll(_SLICE_MS, max_records=1) and consumer.highwater(place) is None:
            if time.monotonic() > deadline:
                break
    except Exception as error:
        if is_understood(error):
            raise broker_error(error, f"cannot read topic {place.topic}") from error
        return False
    finally:
        client.close()
    return True
