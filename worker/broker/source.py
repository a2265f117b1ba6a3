"""The source: raw records of one topic, shared with the other members of a consumer group."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from kafka.net.compat import KafkaNetClient
from kafka.structs import MemberState, OffsetAndMetadata

from worker.broker.admin import BrokerAdmin, Extent
from worker.broker.bounded import bound
from worker.broker.client import (
    asked_offsets,
    broker_error,
    connection_settings,
    is_understood,
    open_client,
    translated,
)
from worker.broker.errors import RecordsUnreadable
from worker.broker.fetched import record_of
from worker.broker.rebalance import Fence, Listener, Ownership, Rebalance, keep_join
from worker.broker.unreadable import find_unreadable
from worker.rules.records import Record

QUESTION_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 3.0
# An empty fetch holds up, at the broker, the fetch of a partition that was resumed meanwhile.
FETCH_WAIT_MS = 200
# A partition that is added, and a topic that is created anew, are noticed within this time and a rebalance.
METADATA_AGE_MS = 10_000
_METADATA_TRIES = 5
_METADATA_WAIT_S = 0.5

log = structlog.get_logger(__name__)


class RecordSource:
    """A member of a consumer group. One thread uses it; ``poll`` drives everything.

    A partition that was assigned stays still until the caller has looked up its position, sought and resumed it:
    ``take_rebalance`` names it until it is sought. Offsets committed to Kafka are for lag tools only and are never
    read back. Keep polling, with everything paused if need be: ``max_poll_interval_ms`` without a poll and the group
    takes the partitions away.

    Rebalances are cooperative: a member keeps what it has, but for the partitions that move. The security settings
    are those of ``connection_settings``.

    Of a compressed record that is larger than ``partition_fetch_max_bytes`` the value is left out, so that nobody can
    fill the memory with a few kilobytes; one that is not compressed arrives whole.

    While the broker is away ``poll`` returns nothing, kafka-python connects again by itself, and the events
    ``kafka_unreachable`` and ``kafka_reachable`` are logged. After an error the consumer inside is closed, because
    kafka-python may spin for ever in the poll after one; every partition is reported as revoked, and the next poll
    joins the group anew.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        client_id: str = "gasp-worker",
        session_timeout_ms: int = 30_000,
        max_poll_interval_ms: int = 300_000,
        max_poll_records: int = 500,
        fetch_max_bytes: int = 32 * 1024 * 1024,
        partition_fetch_max_bytes: int = 4 * 1024 * 1024,
        instance_id: str | None = None,
        security: Mapping[str, object] | None = None,
    ) -> None:
        """Connect and subscribe. Raises BrokerUnavailable within seconds, TopicMissing, BrokerMisconfigured.

        With an ``instance_id`` the member is static: a restart within the session timeout moves no partition, and so
        closing does not leave the group.
        """
        self.topic = topic
        self._bootstrap = bootstrap
        self._security = security
        self._settings: dict[str, Any] = {
            **connection_settings(bootstrap, client_id, security),
            "group_id": group,
            "group_instance_id": instance_id,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": min(3_000, session_timeout_ms // 4),
            "max_poll_interval_ms": max_poll_interval_ms,
            "max_poll_records": max_poll_records,
            "metadata_max_age_ms": METADATA_AGE_MS,
            "fetch_max_wait_ms": FETCH_WAIT_MS,
            "fetch_max_bytes": fetch_max_bytes,
            "max_partition_fetch_bytes": partition_fetch_max_bytes,
            "partition_assignment_strategy": [CooperativeStickyAssignor],
            # kafka-python's defaults lose data or create topics in passing.
            "enable_auto_commit": False,
            # An offset that is gone is for the caller to note, not to be passed over in silence.
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "isolation_level": "read_committed",
            "metrics_enabled": False,
        }
        self._ownership = Ownership()
        self._positions: dict[int, int] = {}
        self._member_id = ""
        self._topic_id: object = None
        self._reachable = True
        self._committed = threading.Event()
        self._committed.set()
        with BrokerAdmin(bootstrap, client_id=client_id, security=security) as admin:
            admin.topic_partitions(topic)
        self._consumer: KafkaConsumer | None = None
        self._client: KafkaNetClient | None = None
        self._open()

    def poll(self, timeout_s: float, max_records: int | None = None) -> list[Record]:
        """Records of the resumed partitions, in order within each; empty after ``timeout_s``.

        Joining the group, rebalances and reports of failed commits happen in here. Raises BrokerUnavailable,
        BrokerMisconfigured, and RecordsUnreadable for records that no poll will ever return.
        """
        consumer = self._consumer or self._open()
        try:
            _raise_parked_error(consumer)
            _free_used_up(consumer)
            keep_join(consumer)
            self._fence.check()
            fetched = consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            self._misplace(error)
            return []
        except Exception as error:
            raise self._recover(error) from error
        self._note_reachability()
        if self._was_away() or self._is_another_topic():
            return []
        for place in consumer.assignment() - consumer.paused():
            self._note_position(consumer, place)
        return [record_of(one) for batch in fetched.values() for one in batch]

    def assignment(self) -> frozenset[int]:
        """The partitions that are ours as far as we know."""
        return frozenset(place.partition for place in self._consumer.assignment()) if self._consumer else frozenset()

    def take_rebalance(self) -> Rebalance:
        """The partitions that wait for their position, and those that went since the last call. Ask after each poll."""
        change = self._ownership.take()
        for partition in change.revoked:
            self._positions.pop(partition, None)
        return change

    def seek(self, partition: int, offset: int) -> None:
        """Read on from ``offset``. A partition that is not ours is left alone, here and in ``pause`` and ``resume``.

        A partition whose offset turns out not to be there, because retention has passed it, is reported as revoked
        and assigned anew.
        """
        if self._consumer and partition in self.assignment():
            self._consumer.seek(TopicPartition(self.topic, partition), offset)
            self._positions[partition] = offset
            self._ownership.place(partition)

    def pause(self, partitions: Iterable[int]) -> None:
        """Return no records of these until they are resumed. What is fetched already is kept."""
        if self._consumer:
            self._consumer.pause(*self._ours(partitions))

    def resume(self, partitions: Iterable[int]) -> None:
        """Return records of these again, from the position they have."""
        if self._consumer:
            self._consumer.resume(*self._ours(partitions))

    def paused(self) -> frozenset[int]:
        """Those of our partitions that return no records."""
        return frozenset(place.partition for place in self._consumer.paused()) if self._consumer else frozenset()

    def extent(self) -> Extent:
        """What the topic holds now. Asks the broker. Raises BrokerUnavailable, TopicMissing."""
        with BrokerAdmin(self._bootstrap, security=self._security) as admin:
            return admin.extent(self.topic)

    def offsets_since(self, since: datetime) -> dict[int, int]:
        """The first offset of each partition that is not older than ``since``, where there is one. Raises as above."""
        with BrokerAdmin(self._bootstrap, security=self._security) as admin:
            return admin.offsets_since(self.topic, since)

    def end_offsets(self) -> dict[int, int]:
        """The offset after the last record of each of our partitions, as of now. Raises BrokerUnavailable."""
        if self._consumer is None:
            return {}
        places = list(self._consumer.assignment())
        with translated(f"cannot ask for the ends of topic {self.topic}"):
            ends = asked_offsets(self._consumer.end_offsets, places, int(QUESTION_TIMEOUT_S * 1000)) if places else {}
        # What a fetch has seen is newer, or more exact: the embedded broker tells the base of its last batch.
        return {place.partition: max(end, self._consumer.highwater(place) or 0) for place, end in ends.items()}

    def end_offset(self, partition: int) -> int | None:
        """The offset after the last record, as of the last fetch; None before the first one."""
        if self._consumer is None or partition not in self.assignment():
            return None
        end: int | None = self._consumer.highwater(TopicPartition(self.topic, partition))
        return end

    def position(self, partition: int) -> int | None:
        """The offset that is read next: behind what the last poll returned, and behind offsets that hold no record.

        Such are the markers of transactions, aborted records and what compaction took. None before the first poll.
        """
        return self._positions.get(partition)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Tell Kafka the next offset per partition, without waiting. A failure is logged and does no harm."""
        if not offsets or self._consumer is None:
            return
        marks = {TopicPartition(self.topic, one): OffsetAndMetadata(next_, "", -1) for one, next_ in offsets.items()}
        self._committed.clear()
        try:
            self._consumer.commit_async(marks, callback=_report_commit).add_both(lambda _: self._committed.set())
        except KafkaError as error:
            self._committed.set()
            _report_commit(marks, error)

    def generation(self) -> int:
        """The group's generation that we belong to; -1 outside the group."""
        return int(self._consumer.group_metadata().generation_id) if self._consumer else -1

    def problem(self) -> str | None:
        """Why nothing can be read at the moment, or None."""
        if self.generation() < 0:
            return "not a member of the consumer group yet"
        if self._reachable:
            return None
        # Nothing public leads from a client to its connections.
        fault: Exception | None = self._client._manager.last_fault if self._client else None  # noqa: SLF001 - as above
        return str(broker_error(fault, "the broker is away")) if fault else "the broker is away"

    def close(self, *, leave: bool = True) -> None:
        """Leave the group, so that others take over at once, and disconnect. Takes a few seconds at the most.

        ``leave=False`` disconnects only: the group notices after the session timeout, as if we had been killed.
        """
        consumer, client, self._consumer, self._client = self._consumer, self._client, None, None
        if consumer is None or client is None:
            return
        try:
            if leave:
                self._committed.wait(CLOSE_TIMEOUT_S)
                consumer.close(autocommit=False, timeout_ms=int(CLOSE_TIMEOUT_S * 1000))
        except Exception as error:  # noqa: BLE001 - we are done with it; the group notices by the session timeout
            log.warning("kafka_close_failed", topic=self.topic, error=type(error).__name__)
        finally:
            client.close()

    def _open(self) -> KafkaConsumer:
        consumer, client = open_client(KafkaConsumer, self._settings)
        bound(consumer, self._settings["max_partition_fetch_bytes"])
        consumer.subscribe([self.topic], listener=Listener(consumer, self._ownership))
        self._fence = Fence(consumer)
        _wait_for_metadata(client, self.topic)
        self._consumer, self._client, self._member_id = consumer, client, ""
        return consumer

    def _misplace(self, error: OffsetOutOfRangeError | NoOffsetForPartitionError) -> None:
        """Hand partitions whose offset is not there back to the caller, to be placed anew."""
        partitions = sorted(place.partition for place in error.args[0])
        log.warning("kafka_offset_missing", topic=self.topic, partitions=partitions)
        self.pause(partitions)
        self._ownership.lose(partitions)
        self._ownership.gain(partitions)

    def _recover(self, error: Exception) -> Exception:
        """Close the consumer; return what to raise."""
        running = (self.assignment() - self.paused()) & self._positions.keys()
        positions = {partition: self._positions[partition] for partition in running}
        self._ownership.lose(self.assignment())
        self.close()
        if is_understood(error):
            return broker_error(error, f"cannot read topic {self.topic}")
        log.warning("kafka_poll_failed", topic=self.topic, error=type(error).__name__)
        unreadable = find_unreadable(self._bootstrap, self.topic, positions, security=self._security)
        if unreadable is not None:
            stretch = (unreadable.partition, unreadable.offset, unreadable.next_offset)
            return RecordsUnreadable(self.topic, *stretch, position=positions[unreadable.partition])
        return broker_error(error, f"cannot read topic {self.topic}; the consumer is rebuilt")

    def _note_position(self, consumer: KafkaConsumer, place: TopicPartition) -> None:
        # The public question may put another one to the broker.
        state = consumer._subscription.assignment.get(place)  # noqa: SLF001 - as above
        if state is not None and state.position is not None:
            self._positions[place.partition] = state.position.offset

    def _note_reachability(self) -> None:
        """Log when a member loses its last connection, and when it has one again."""
        if self._client is None or self.generation() < 0:
            return
        nodes = [node.node_id for node in self._client.cluster.brokers()]
        # The coordinator's connection goes by a name of its own.
        reachable = any(self._client.connected(name) for node in nodes for name in (node, f"coordinator-{node}"))
        if reachable == self._reachable:
            return
        self._reachable = reachable
        if reachable:
            log.warning("kafka_reachable", topic=self.topic)
        else:
            log.warning("kafka_unreachable", topic=self.topic, error=self.problem())

    def _was_away(self) -> bool:
        """Whether the group dropped us and let us in again, so that others may have owned what we kept.

        kafka-python tells its listener so, but not when it learns of it while it is joining.
        """
        member = self._consumer.group_metadata() if self._consumer else None
        if member is None or member.state is not MemberState.STABLE:
            return False
        before, self._member_id = self._member_id, member.member_id
        return before not in {"", member.member_id} and self._place_again()

    def _is_another_topic(self) -> bool:
        """Whether the topic was deleted and created again since it was last looked at, while we kept partitions of it.

        kafka-python reads on in the new one where it stood in the old.
        """
        topic_id = self._client.cluster.topic_id(self.topic) if self._client else None
        before, self._topic_id = self._topic_id, topic_id or self._topic_id
        return before not in {None, self._topic_id} and self._place_again()

    def _place_again(self) -> bool:
        """Hand the partitions that have a position back to the caller; whether there are any."""
        kept = self.assignment() & self._positions.keys()
        self.pause(kept)
        self._ownership.lose(kept)
        self._ownership.gain(kept)
        return bool(kept)

    def _ours(self, partitions: Iterable[int]) -> list[TopicPartition]:
        ours = self.assignment()
        return [TopicPartition(self.topic, partition) for partition in partitions if partition in ours]


def _wait_for_metadata(client: KafkaNetClient, topic: str) -> None:
    """Wait a moment until the topic's partitions are known. Joining without costs a second rebalance, no more."""
    for _ in range(_METADATA_TRIES):
        if client.cluster.partitions_for_topic(topic):
            return
        answered = threading.Event()
        client.cluster.request_update().add_both(lambda _, answered=answered: answered.set())
        answered.wait(_METADATA_WAIT_S)


def _free_used_up(consumer: KafkaConsumer) -> None:
    """Let partitions that were paused with fetched records in hand have them again once they are resumed.

    kafka-python gives them back only when nothing is in line, and takes a batch that is used up for something: such a
    partition would stand still, neither fetched nor read, until another one brings new records.
    """
    fetcher = consumer._fetcher  # noqa: SLF001 - nothing public tells
    if not getattr(fetcher, "_next_partition_records", True):
        fetcher._next_partition_records = None  # noqa: SLF001


def _raise_parked_error(consumer: KafkaConsumer) -> None:
    """Raise the error that the last poll met behind the records it returned.

    kafka-python keeps it for its next poll, but forgets it if the partition was paused or sought meanwhile, and then
    spins for ever on a batch that is used up.
    """
    fetcher = consumer._fetcher  # noqa: SLF001 - nothing public tells
    parked = getattr(fetcher, "_next_in_line_exception_metadata", None)
    if parked is not None:
        fetcher._next_in_line_exception_metadata = None  # noqa: SLF001
        raise parked.exception


def _report_commit(offsets: Mapping[TopicPartition, OffsetAndMetadata], outcome: object) -> None:
    if isinstance(outcome, Exception):
        partitions = sorted(place.partition for place in offsets)
        log.warning("kafka_commit_failed", partitions=partitions, error=type(outcome).__name__)
