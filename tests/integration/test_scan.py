"""Reading a topic outside any consumer group, on each broker that we run on."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from tests.apache_kafka import ApacheKafka
from tests.brokers import DEADLINE_S, Broker
from worker.broker.errors import BrokerUnavailable, RecordsUnreadable, TopicMissing
from worker.broker.scan import TopicScan
from worker.broker.sink import RecordSink
from worker.broker.unreadable import Unreadable
from worker.rules.records import Record

KIB = 1024
# Nothing listens there: the port is reserved and never given out.
NOBODY = "127.0.0.1:1"


def values(scan: TopicScan) -> list[bytes | None]:
    return [item.value for item in scan if isinstance(item, Record)]


def test_every_partition_is_read_in_order_up_to_the_end_it_had(broker: Broker) -> None:
    topic = broker.create_topic(partitions=3)
    broker.send(topic, [b"%d" % number for number in range(700)])
    scan = TopicScan(broker.bootstrap, topic)
    broker.send(topic, [b"later"])
    assert scan.offsets == 700
    for _ in range(2):
        records = [item for item in scan if isinstance(item, Record)]
        assert sorted(int(record.value or b"") for record in records) == list(range(700))
        places = [(record.partition, record.offset) for record in records]
        assert places == sorted(places)


def test_a_record_is_read_as_it_was_sent(broker: Broker) -> None:
    topic = broker.create_topic()
    headers = (("trace", b"\x00\xff"), ("trace", b"again"))
    with RecordSink(broker.bootstrap) as sink:
        sink.send(topic, b"value", key=b"\xfekey", headers=headers)
        sink.send(topic, None, key=b"tombstone")
        sink.flush(DEADLINE_S)
    first, second = TopicScan(broker.bootstrap, topic)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.topic, first.key, first.value, first.headers) == (topic, b"\xfekey", b"value", headers)
    assert first.timestamp_ms == pytest.approx(time.time() * 1000, abs=60_000)
    assert (second.offset, second.key, second.value) == (1, b"tombstone", None)


def test_an_empty_topic_has_nothing_and_a_missing_one_is_named(broker: Broker) -> None:
    topic = broker.create_topic(partitions=2)
    scan = TopicScan(broker.bootstrap, topic)
    assert (scan.offsets, list(scan), scan.find(0, 0)) == (0, [], None)
    with pytest.raises(TopicMissing, match=f"{topic}-missing"):
        TopicScan(broker.bootstrap, f"{topic}-missing")


def test_a_record_is_found_by_its_place_or_is_not_there(broker: Broker) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"%d" % number for number in range(20)])
    scan = TopicScan(broker.bootstrap, topic)
    found = scan.find(0, 7)
    assert found is not None
    assert (found.offset, found.value) == (7, b"7")
    assert [scan.find(*place) for place in ((0, 20), (0, -1), (1, 7), (0, 10**30))] == [None] * 4


def test_records_larger_than_a_fetch_come_one_by_one(broker: Broker) -> None:
    topic = broker.create_topic(config={"max.message.bytes": str(8 * KIB * KIB)})
    large = [bytes([number]) * (5 * KIB * KIB) for number in range(3)]
    broker.send(topic, large)
    scan = TopicScan(broker.bootstrap, topic)
    assert values(scan) == large
    found = scan.find(0, 2)
    assert found is not None
    assert found.value == large[2]


def test_what_cannot_be_decoded_is_a_gap_and_the_rest_is_read(broker: Broker) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"before"])
    broker.send_undecodable(topic)
    broker.send(topic, [b"after"])
    scan = TopicScan(broker.bootstrap, topic)
    items = list(scan)
    assert [item.value for item in items if isinstance(item, Record)] == [b"before", b"first of the batch", b"after"]
    assert [item for item in items if isinstance(item, Unreadable)] == [Unreadable(0, 2, 4)]
    with pytest.raises(RecordsUnreadable):
        scan.find(0, 2)


def test_a_broker_that_is_not_there_is_reported_soon() -> None:
    before = time.monotonic()
    with pytest.raises(BrokerUnavailable, match=NOBODY):
        TopicScan(NOBODY, "topic")
    assert time.monotonic() - before < 8


@pytest.mark.kafka
def test_transactions_do_not_hold_up_the_end(apache: Broker) -> None:
    """The marker of a transaction's end takes an offset and is no record; an open one has no end yet."""
    topic = apache.create_topic()
    settings = {"bootstrap_servers": apache.bootstrap}
    with (
        closing(KafkaProducer(transactional_id=f"{topic}-done", **settings)) as done,
        closing(KafkaProducer(transactional_id=f"{topic}-open", **settings)) as left_open,
    ):
        for producer in (done, left_open):
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"in a transaction").get(DEADLINE_S)
        done.commit_transaction()
        scan = TopicScan(apache.bootstrap, topic)
        assert values(scan) == [b"in a transaction"] * 2
        assert scan.offsets == 3
        assert scan.find(0, 2) is None
        left_open.abort_transaction()


@pytest.mark.kafka
def test_what_retention_takes_after_the_opening_is_passed_over(apache: Broker) -> None:
    topic = apache.create_topic()
    apache.send(topic, [b"%d" % number for number in range(20)])
    scan = TopicScan(apache.bootstrap, topic)
    with closing(KafkaAdminClient(bootstrap_servers=apache.bootstrap)) as admin:
        admin.delete_records({TopicPartition(topic, 0): 15})
        assert values(scan) == [b"15", b"16", b"17", b"18", b"19"]
        assert scan.find(0, 7) is None
        admin.delete_records({TopicPartition(topic, 0): 20})
        assert values(scan) == []


@pytest.mark.kafka
def test_a_broker_that_goes_away_in_the_middle_ends_the_scan(own_apache: Broker, apache_node: ApacheKafka) -> None:
    topic = own_apache.create_topic(partitions=2, config={"max.message.bytes": str(8 * KIB * KIB)})
    with RecordSink(own_apache.bootstrap) as sink:
        for number in range(40):
            sink.send(topic, bytes(KIB * KIB), key=b"%d" % number)
        sink.flush(DEADLINE_S)
    scan = TopicScan(own_apache.bootstrap, topic, stall_timeout_s=2.0)
    items = iter(scan)
    next(items)
    apache_node.kill()
    try:
        before = time.monotonic()
        with pytest.raises(BrokerUnavailable):
            list(items)
        assert time.monotonic() - before < 15
    finally:
        apache_node.start()
    assert len(list(scan)) == 40
