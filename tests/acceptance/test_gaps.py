"""Messages that are gone before they were read: passed, entered, and said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from tests.brokers import Broker
from tests.exchanges import exchange
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.admin import BrokerAdmin, NewTopic

Deploy = Callable[..., Deployment]

GAPS = "SELECT from_offset, to_offset, reason, incarnation, messages FROM v_lost_offsets"


@contextmanager
def administration(broker: Broker) -> Iterator[KafkaAdminClient]:
    """What this project never does to a topic."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        yield client
    finally:
        client.close()


def delete_before(deployment: Deployment, offset: int) -> None:
    """What retention does, at once."""
    with administration(deployment.broker) as client:
        client.delete_records({TopicPartition(deployment.topic, 0): offset})


def create_again(deployment: Deployment, partitions: int = 1) -> None:
    """Delete the topic and create it anew under its name."""
    with administration(deployment.broker) as client, BrokerAdmin(deployment.broker.bootstrap) as admin:
        client.delete_topics([deployment.topic])
        wait_until(
            lambda: admin.create_topics([NewTopic(deployment.topic, partitions)]).created,
            what="the topic's name to be free again",
        )


def spread(deployment: Deployment, numbers: Iterable[int]) -> None:
    """Log exchanges of these numbers, one after the other into each partition that there is."""
    producer = KafkaProducer(bootstrap_servers=deployment.broker.bootstrap)
    partitions = len(producer.partitions_for(deployment.topic))
    for number in numbers:
        producer.send(deployment.topic, json.dumps(exchange(number)).encode(), partition=number % partitions)
    producer.close()


@pytest.mark.kafka
def test_what_retention_deletes_before_it_was_read_is_a_gap(apache: Broker, deploy: Deploy) -> None:
    deployment = deploy(apache)
    deployment.send(0, 4)
    with deployment.worker():
        deployment.wait_settled(4)
    deployment.send(4, 12)
    delete_before(deployment, 10)
    with deployment.worker() as worker:
        deployment.wait_settled(10)
        assert worker.events("offsets_lost") == 1
        # It goes on like this while it runs: the positions that are read next are gone.
        deployment.send(16, 3)
        deployment.wait_settled(13)
    assert deployment.rows(GAPS) == [
        {"from_offset": 4, "to_offset": 10, "reason": "retention", "incarnation": 0, "messages": 6}
    ]
    booked = [row["record_offset"] for row in deployment.rows("SELECT record_offset FROM ledger ORDER BY 1")]
    assert booked == [*range(4), *range(10, 19)]


@pytest.mark.kafka
def test_a_topic_that_is_deleted_and_created_again_is_read_from_its_beginning(apache: Broker, deploy: Deploy) -> None:
    deployment = deploy(apache)
    deployment.send(0, 6)
    with deployment.worker():
        deployment.wait_settled(6)
    create_again(deployment)
    deployment.send(4, 4)
    with deployment.worker() as worker:
        deployment.wait_settled(10)
        assert worker.events("offsets_lost") == 1
    (gap,) = deployment.rows(GAPS)
    assert (gap["reason"], gap["from_offset"]) == ("topic_recreated", 6)
    booked = deployment.rows("SELECT incarnation, record_offset, outcome, reason FROM ledger ORDER BY 1, 2")
    assert [(row["incarnation"], row["record_offset"]) for row in booked] == [
        *((0, offset) for offset in range(6)),
        *((1, offset) for offset in range(4)),
    ]
    # The first two had been logged in the old topic, too.
    assert [row["reason"] for row in booked[6:]] == ["duplicate", "duplicate", None, None]


@pytest.mark.parametrize("first_start", ["latest", "time"])
def test_a_partition_that_was_never_read_begins_where_the_operator_says(
    broker: Broker, deploy: Deploy, first_start: str
) -> None:
    deployment = deploy(broker)
    deployment.send(0, 5)
    # Kafka's clock has milliseconds.
    moment = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > moment, what="the moment")
    deployment.settings = {"first_start": moment.isoformat() if first_start == "time" else first_start}
    if first_start == "time":
        deployment.send(5, 1)
    with deployment.worker() as worker:
        wait_until(lambda: deployment.count("partition_offsets WHERE owner <> ''"), what="the partition's claim")
        deployment.send(6, 2)
        expected = [5, 6, 7] if first_start == "time" else [5, 6]
        deployment.wait_settled(len(expected))
        assert worker.process.poll() is None
    offsets = [row["record_offset"] for row in deployment.rows("SELECT record_offset FROM ledger ORDER BY 1")]
    assert offsets == expected
    assert deployment.count("offset_gaps") == 0


@pytest.mark.kafka
def test_partitions_that_are_added_to_a_running_topic_are_read_from_their_first_message(
    apache: Broker, deploy: Deploy
) -> None:
    deployment = deploy(apache, first_start="latest")
    deployment.send(0, 5)
    with deployment.worker():
        wait_until(lambda: deployment.count("partition_offsets WHERE owner <> ''"), what="the partition's claim")
        with administration(apache) as client:
            client.create_partitions({deployment.topic: 6})
        # Before the workers know of the new ones.
        spread(deployment, range(5, 20))
        deployment.wait_settled(15)
    assert deployment.rows("SELECT sum(next_offset)::int AS n FROM partition_offsets") == [{"n": 20}]
    assert deployment.count("offset_gaps") == 0


@pytest.mark.kafka
def test_a_topic_that_is_created_again_under_a_running_worker_is_read_from_its_beginning(
    apache: Broker, deploy: Deploy
) -> None:
    deployment = deploy(apache, first_start="latest", partitions=4)
    with deployment.worker() as worker:
        wait_until(lambda: deployment.count("partition_offsets WHERE owner <> ''") == 4, what="the claims")
        spread(deployment, range(8))
        deployment.wait_settled(8)
        create_again(deployment, partitions=2)
        # As many as before and more, so that every old position is an offset of the new topic, too.
        spread(deployment, range(8, 32))
        deployment.wait_settled(32)
        assert worker.process.poll() is None
    scored = deployment.rows("SELECT count(*) AS n FROM interactions")
    assert scored == [{"n": 32}]
    gaps = deployment.rows("SELECT partition, to_offset, messages, reason FROM v_lost_offsets ORDER BY 1")
    assert gaps == [
        {"partition": n, "to_offset": None, "messages": None, "reason": "topic_recreated"} for n in range(4)
    ]
    lag = deployment.rows("SELECT partition, lag FROM v_ingest_lag ORDER BY 1")
    assert lag == [{"partition": 0, "lag": 0}, {"partition": 1, "lag": 0}]
