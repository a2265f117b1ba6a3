"""Questions to the broker that need no consumer group: is it there, which topics, which offsets."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from worker.broker.client import asked_offsets, connection_settings, open_client, time_to_open, translated
from worker.broker.errors import BrokerMisconfigured, TopicMissing

PING_TIMEOUT_S = 3.0
_SLICE_MS = 100
_TOPIC_REMEDY = "look at the name and at --partitions and --replication; creating it takes the ACL Create"


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``config`` holds the broker's topic settings, such as ``max.message.bytes``."""

    name: str
    partitions: int
    replication: int = 1
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Created:
    """Names of topics: those that were created just now, and those that were there, however they are configured."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """What a topic holds: for each partition the first offset that is left, and the one after the last record.

    ``topic_id`` is another one when a topic was deleted and created again; None if the broker tells none.
    """

    topic_id: str | None
    beginnings: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a broker says of its cluster."""

    cluster_id: str
    brokers: int


class BrokerAdmin:
    """A connection for administration; close it or use it in a ``with``.

    Opening it and every method raise BrokerUnavailable, after ``timeout_s`` a request, or BrokerMisconfigured. Without
    ``timeout_s`` it is that of all clients.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "gasp-admin",
        timeout_s: float | None = None,
        security: Mapping[str, object] | None = None,
    ) -> None:
        """Connect."""
        within_s = time_to_open(timeout_s)
        self._timeout_ms = int(within_s * 1000)
        self._settings = connection_settings(
            bootstrap, client_id, security, open_timeout_s=within_s, request_timeout_s=within_s
        )
        self._admin, _ = open_client(KafkaAdminClient, self._settings)

    def create_topics(self, topics: Sequence[NewTopic]) -> Created:
        """Create those that do not exist yet, and wait until they can be used."""
        wanted = {topic.name: _request(topic) for topic in topics}
        with translated("cannot create topics"):
            answers = self._admin.create_topics(wanted, raise_errors=False)["topics"]
        existing = [topic["name"] for topic in answers if topic["error_code"] == _ALREADY_EXISTS]
        for topic in answers:
            if topic["error_code"] and topic["name"] not in existing:
                raise BrokerMisconfigured(f"cannot create topic {topic['name']}: {_cause(topic)}; {_TOPIC_REMEDY}")
        with translated("the topics were created but are not ready"):
            self._admin.wait_for_topics(list(wanted), timeout_ms=self._timeout_ms)
        return Created(tuple(name for name in wanted if name not in existing), tuple(existing))

    def topic_partitions(self, topic: str) -> list[int]:
        """The numbers of the topic's partitions, ascending. Raises TopicMissing."""
        return _partitions(self._describe(topic))

    def extent(self, topic: str) -> Extent:
        """What the topic holds now. Raises TopicMissing."""
        facts = self._describe(topic)
        places = [TopicPartition(topic, partition) for partition in _partitions(facts)]
        with self._asking(f"cannot ask for the offsets of topic {topic}") as consumer:
            beginnings = asked_offsets(consumer.beginning_offsets, places, self._timeout_ms)
            ends = asked_offsets(consumer.end_offsets, places, self._timeout_ms)
            ends |= _high_watermarks(consumer, ends, self._timeout_ms / 1000)
        topic_id = str(facts["topic_id"] or _NO_TOPIC_ID)
        return Extent(
            None if topic_id == _NO_TOPIC_ID else topic_id,
            beginnings=_by_partition(beginnings),
            ends=_by_partition(ends),
        )

    def offsets_since(self, topic: str, since: datetime) -> dict[int, int]:
        """The first offset of each partition whose record is not older than ``since``; a partition may have none.

        Raises TopicMissing.
        """
        since_ms = int(since.timestamp() * 1000)
        asked = {TopicPartition(topic, partition): since_ms for partition in self.topic_partitions(topic)}
        with self._asking(f"cannot ask for the offsets of topic {topic} by time") as consumer:
            found = consumer.offsets_for_times(asked, self._timeout_ms)
        return _by_partition({place: at.offset for place, at in found.items() if at is not None})

    def ping(self) -> Cluster:
        """Ask the broker who it is."""
        with translated("the broker does not answer"):
            facts = self._admin.describe_cluster()
        return Cluster(facts["cluster_id"], len(facts["brokers"]))

    def close(self) -> None:
        """Disconnect."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _describe(self, topic: str) -> dict[str, Any]:
        with translated(f"cannot ask for topic {topic}"):
            (facts,) = self._admin.describe_topics([topic])
            kind = kafka_errors.for_code(facts["error_code"])
            if kind is kafka_errors.UnknownTopicOrPartitionError:
                raise TopicMissing(topic)
            if kind is not kafka_errors.NoError:
                raise kind
            described: dict[str, Any] = facts
        return described

    @contextmanager
    def _asking(self, action: str) -> Iterator[KafkaConsumer]:
        """A consumer outside any group, for questions about offsets."""
        # The least that a fetch can ask for: only the high watermarks in its answer matter.
        least = {"fetch_max_wait_ms": 1, "fetch_max_bytes": 1, "max_partition_fetch_bytes": 1, "metrics_enabled": False}
        consumer, client = open_client(KafkaConsumer, {**self._settings, **least, "enable_auto_commit": False})
        try:
            with translated(action):
                yield consumer
        finally:
            client.close()


def ping(bootstrap: str, *, timeout_s: float = PING_TIMEOUT_S, security: Mapping[str, object] | None = None) -> Cluster:
    """Connect, ask the broker who it is, disconnect.

    Raises BrokerUnavailable after ``timeout_s``, or BrokerMisconfigured.
    """
    with BrokerAdmin(bootstrap, client_id="gasp-ping", timeout_s=timeout_s, security=security) as admin:
        return admin.ping()


_NO_TOPIC_ID = str(uuid.UUID(int=0))
_ALREADY_EXISTS = kafka_errors.TopicAlreadyExistsError.errno


def _request(topic: NewTopic) -> dict[str, Any]:
    return {
        "num_partitions": topic.partitions,
        "replication_factor": topic.replication,
        "configs": dict(topic.config),
    }


def _partitions(facts: Mapping[str, Any]) -> list[int]:
    return sorted(partition["partition_index"] for partition in facts["partitions"])


def _cause(answer: Mapping[str, Any]) -> str:
    return str(answer["error_message"] or kafka_errors.for_code(answer["error_code"]).__name__)


def _high_watermarks(
    consumer: KafkaConsumer, ends: Mapping[TopicPartition, int], timeout_s: float
) -> dict[TopicPartition, int]:
    """The high watermark of each partition as a fetch reports it, where one is answered in time.

    ListOffsets of the embedded broker stops at the base of the last batch; a fetch tells the truth on every broker.
    """
    consumer.assign(list(ends))
    for place, end in ends.items():
        consumer.seek(place, end)
    deadline = time.monotonic() + timeout_s
    waiting = set(ends)
    while waiting and time.monotonic() < deadline:
        consumer.poll(_SLICE_MS)
        waiting = {place for place in waiting if consumer.highwater(place) is None}
        consumer.pause(*(ends.keys() - waiting))
    return {place: consumer.highwater(place) for place in ends.keys() - waiting}


def _by_partition(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in sorted(offsets.items())}
