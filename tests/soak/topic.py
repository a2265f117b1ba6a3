"""What the soak asks Kafka, and tells it: topics and their partitions, records, and how far the group has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from tests.apache_kafka import ApacheKafka
from tests.fixtures.bad_inputs import MAX_MESSAGE_BYTES
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.scan import TopicScan
from worker.ingest.topics import MESSAGE_FRAME_BYTES
from worker.rules.records import Record

TOPIC, DEAD_LETTER_TOPIC, TASKS_TOPIC = "soak", "soak-dead-letters", "soak-review-tasks"
GROUP = "soak"


def create_topics(kafka: ApacheKafka, partitions: int) -> None:
    """Make the topics; they take the largest messages of the load."""
    config = {"max.message.bytes": str(MAX_MESSAGE_BYTES + MESSAGE_FRAME_BYTES)}
    topics = [NewTopic(TOPIC, partitions, 1, config)]
    topics += [NewTopic(name, 1, 1, config) for name in (DEAD_LETTER_TOPIC, TASKS_TOPIC)]
    with BrokerAdmin(kafka.bootstrap) as admin:
        admin.create_topics(topics)


def add_partitions(kafka: ApacheKafka, count: int) -> set[int]:
    """Let the topic grow; the numbers of the new partitions."""
    with BrokerAdmin(kafka.bootstrap) as admin:
        known = admin.topic_partitions(TOPIC)
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as client:
        client.create_partitions({TOPIC: len(known) + count})
    return set(range(len(known), len(known) + count))


def ends(kafka: ApacheKafka) -> Mapping[int, int]:
    """The offset after the last one of each partition, be that of a record or of the end of a transaction."""
    with BrokerAdmin(kafka.bootstrap) as admin:
        return admin.extent(TOPIC).ends


def committed(kafka: ApacheKafka, partitions: Sequence[int]) -> dict[int, int | None]:
    """Where Kafka's own tools see the group."""
    settings = {"bootstrap_servers": kafka.bootstrap, "group_id": GROUP, "enable_auto_commit": False}
    with closing(KafkaConsumer(**settings)) as consumer:
        return {one: consumer.committed(TopicPartition(TOPIC, one), timeout_ms=5_000) for one in partitions}


def records(kafka: ApacheKafka, topic: str, *, aborted: bool = False) -> list[Record]:
    """The records of a topic, those of aborted transactions among them only if asked for."""
    scan = TopicScan(kafka.bootstrap, topic)
    if not aborted:
        scan._settings["isolation_level"] = "read_committed"
    return [found for found in scan if isinstance(found, Record)]
