"""Reading a topic from its beginning to its end, outside any consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from worker.broker.admin import BrokerAdmin
from worker.broker.bounded import bound
from worker.broker.client import AWAY, broker_error, connection_settings, is_understood, open_client
from worker.broker.errors import BrokerUnavailable, RecordsUnreadable
from worker.broker.fetched import record_of
from worker.broker.unreadable import Unreadable, find_unreadable
from worker.rules.records import Record

# How long a broker may say nothing before the scan is given up.
STALL_TIMEOUT_S = 15.0
FETCH_MAX_BYTES = 4 * 1024 * 1024
# Of a compressed record that is larger the value is left out.
MOST_READ_BYTES = 64 * 1024 * 1024
_SLICE_MS = 200


class TopicScan:
    """A topic between the beginnings and the ends that its partitions had when this was opened.

    It may be read several times. At most two fetches of ``FETCH_MAX_BYTES``, or one larger record each, are
    in memory. Nothing is committed, and nobody's partitions move. Records of open and of aborted transactions are read
    too, because a transaction that somebody left open would hold up the end.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        client_id: str = "gasp-scan",
        stall_timeout_s: float = STALL_TIMEOUT_S,
        security: Mapping[str, object] | None = None,
        since: Mapping[int, int] | None = None,
    ) -> None:
        """Ask for the offsets; a partition in ``since`` begins there at the earliest.

        Raises BrokerUnavailable within seconds, TopicMissing, BrokerMisconfigured.
        """
        self.topic = topic
        self._bootstrap = bootstrap
        self._security = security
        self._stall_timeout_s = stall_timeout_s
        self._settings: dict[str, Any] = {
            **connection_settings(bootstrap, client_id, security),
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }
        with BrokerAdmin(bootstrap, client_id=client_id, security=security) as admin:
            extent = admin.extent(topic)
        self._ends = extent.ends
        first = {one: max((since or {}).get(one, 0), beginning) for one, beginning in extent.beginnings.items()}
        self._beginnings = {one: min(beginning, self._ends[one]) for one, beginning in first.items()}

    @property
    def offsets(self) -> int:
        """How many offsets lie between beginnings and ends; not each need have a record."""
        return sum(self._ends.values()) - sum(self._beginnings.values())

    def __iter__(self) -> Iterator[Record | Unreadable]:
        """The records, partition by partition, each in order; an unreadable stretch in place of what cannot be decoded.

        Raises BrokerUnavailable if nothing comes for ``stall_timeout_s``, and BrokerMisconfigured.
        """
        for partition, end in self._ends.items():
            yield from self._partition(partition, self._beginnings[partition], end, FETCH_MAX_BYTES)

    def find(self, partition: int, offset: int) -> Record | None:
        """The record at an offset, or None if there is none: retention or compaction took it, or it never was.

        Raises RecordsUnreadable if it cannot be decoded, and otherwise as reading does.
        """
        if not self._beginnings.get(partition, 0) <= offset < self._ends.get(partition, 0):
            return None
        # The least that a fetch can ask for brings one batch.
        for found in self._partition(partition, offset, offset + 1, fetch_max_bytes=1):
            if isinstance(found, Unreadable):
                raise RecordsUnreadable(self.topic, found.partition, found.offset, found.next_offset)
            return found
        return None

    def _partition(
        self, partition: int, beginning: int, end: int, fetch_max_bytes: int
    ) -> Iterator[Record | Unreadable]:
        """The records from ``beginning`` up to but not including ``end``."""
        place, position = TopicPartition(self.topic, partition), beginning
        while position < end:
            try:
                for record in self._records(place, position, end, fetch_max_bytes):
                    yield record
                    position = record.offset + 1
            except _CannotDecode as error:
                unreadable = self._unreadable(partition, position)
                if unreadable is None:
                    raise broker_error(error.cause, f"cannot read topic {self.topic}") from error
                yield unreadable
                position = unreadable.next_offset
            else:
                return

    def _records(self, place: TopicPartition, beginning: int, end: int, fetch_max_bytes: int) -> Iterator[Record]:
        """Read with a client of its own, since kafka-python cannot go on after an error."""
        sizes = {"fetch_max_bytes": fetch_max_bytes, "max_partition_fetch_bytes": fetch_max_bytes}
        consumer, client = open_client(KafkaConsumer, self._settings | sizes)
        bound(consumer, MOST_READ_BYTES)
        try:
            consumer.assign([place])
            consumer.seek(place, beginning)
            position = beginning
            while position < end:
                records, position = self._poll(consumer, place, position)
                yield from (record for record in records if beginning <= record.offset < end)
        finally:
            client.close()

    def _poll(self, consumer: KafkaConsumer, place: TopicPartition, position: int) -> tuple[list[Record], int]:
        """What comes next, and the position behind it; only the position moves over a transaction's marker."""
        deadline = time.monotonic() + self._stall_timeout_s
        while time.monotonic() < deadline:
            try:
                fetched = consumer.poll(_SLICE_MS).get(place, [])
                reached = consumer.position(place, _SLICE_MS)
            except Exception as error:
                if is_understood(error):
                    raise broker_error(error, f"cannot read topic {self.topic}") from error
                raise _CannotDecode(error) from error
            if fetched or (reached is not None and reached != position):
                return [record_of(one) for one in fetched], position if reached is None else reached
        where = f"{place.topic}[{place.partition}] from offset {position} on"
        raise BrokerUnavailable(f"cannot read {where}: nothing came for {self._stall_timeout_s:g} s; {AWAY}")

    def _unreadable(self, partition: int, position: int) -> Unreadable | None:
        return find_unreadable(self._bootstrap, self.topic, {partition: position}, security=self._security)


class _CannotDecode(Exception):  # noqa: N818 - reads as the fact it states
    """kafka-python failed on the bytes of a batch; ``cause`` is what it raised, and may quote them."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause
