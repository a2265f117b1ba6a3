"""What worker.broker promises, on each broker that we run on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove
from kafka.errors import ProducerFencedError
from kafka.producer.transaction_manager import ProducerIdAndEpoch
from kafka.structs import MemberState
from structlog.testing import capture_logs

from tests.apache_kafka import ApacheKafka
from tests.brokers import DEADLINE_S, Broker, Group
from tests.waiting import wait_until
from worker.broker.admin import BrokerAdmin, Cluster, NewTopic, ping
from worker.broker.client import asked_offsets
from worker.broker.errors import (
    BrokerMisconfigured,
    BrokerUnavailable,
    RecordsUnreadable,
    RecordTooLarge,
    SendFailed,
    TopicMissing,
)
from worker.broker.rebalance import Rebalance
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.rules.records import Record

GroupOn = Callable[..., Group]

KIB = 1024
# Nothing listens there: the port is reserved and never given out.
NOBODY = "127.0.0.1:1"


def test_a_record_arrives_as_it_was_sent(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    headers = (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""))
    with RecordSink(broker.bootstrap) as sink:
        place = sink.send(topic, b"value", key=b"\xfekey", headers=headers).result(DEADLINE_S)
        sink.send(topic, None, key=b"tombstone")
        sink.send(topic, b"", key=None)
        sink.flush(DEADLINE_S)
    group = group_on(topic)
    group.join()
    group.run(lambda: len(group.records) == 3)
    first, second, third = group.records
    assert (first.topic, first.partition, first.offset) == place
    assert (first.key, first.value, first.headers) == (b"\xfekey", b"value", headers)
    assert first.timestamp_ms == pytest.approx(time.time() * 1000, abs=60_000)
    assert (second.key, second.value, second.headers) == (b"tombstone", None, ())
    assert (third.key, third.value) == (None, b"")


def test_a_partition_keeps_its_order(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    values = [b"%d" % number for number in range(700)]
    broker.send(topic, values)
    group = group_on(topic)
    group.join()
    group.run(lambda: len(group.records) >= len(values))
    assert group.values() == values
    assert [record.offset for record in group.records] == list(range(700))


def test_an_assigned_partition_is_silent_until_it_is_sought_and_resumed(broker: Broker) -> None:
    topic = broker.create_topic(partitions=2)
    with RecordSink(broker.bootstrap) as sink:
        for number in range(40):
            sink.send(topic, b"%d" % number, key=b"%d" % (number % 7))
        sink.flush(DEADLINE_S)
    source = broker.source(topic)
    try:
        _poll_until(source, lambda: len(source.assignment()) == 2)
        assert source.take_rebalance().assigned == {0, 1}
        assert source.poll(0.5) == []
        assert source.paused() == {0, 1}

        source.seek(0, 3)
        assert source.poll(0.3) == []
        assert source.take_rebalance().assigned == {1}, "it is named until it is sought"

        source.resume([0])
        records = _poll_until(source, lambda: True, wanted=1)
        assert {record.partition for record in records} == {0}
        assert records[0].offset == 3
    finally:
        source.close()


def test_a_paused_partition_says_nothing_and_loses_nothing(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"%d" % number for number in range(20)])
    group = group_on(topic)
    source = group.join()
    group.run(lambda: source.assignment() and not source.paused())
    group.records += source.poll(DEADLINE_S, 5)
    source.pause([0])
    broker.send(topic, [b"20"])
    assert source.poll(0.5) == []
    source.resume([0])
    group.run(lambda: len(group.records) >= 21)
    assert group.values() == [b"%d" % number for number in range(21)]


def test_a_partition_that_was_paused_with_records_in_hand_goes_on_when_it_is_resumed(
    broker: Broker, group_on: GroupOn
) -> None:
    topic = broker.create_topic(partitions=2)
    with RecordSink(broker.bootstrap) as sink:
        sent = [sink.send(topic, b"value", key=b"%d" % number) for number in range(40)]
        sink.flush(DEADLINE_S)
    logged = Counter(one.result().partition for one in sent)
    source = group_on(topic).join()
    read: Counter[int] = Counter()

    def read_some(max_records: int) -> Counter[int]:
        read.update(record.partition for record in source.poll(0.1, max_records))
        for partition in source.take_rebalance().assigned:
            source.seek(partition, 0)
            source.resume([partition])
        return read

    wait_until(lambda: read_some(2), what="the first records")
    (first,) = read
    source.pause([first])
    wait_until(lambda: read_some(100)[1 - first] == logged[1 - first], what="those of the other partition")
    assert read[first] == 2
    source.resume([first])
    wait_until(lambda: read_some(100) == logged, what="those that were in hand", deadline_s=20)


def test_a_seek_back_reads_again(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"%d" % number for number in range(10)])
    group = group_on(topic)
    source = group.join()
    group.run(lambda: len(group.records) == 10)
    source.seek(0, 4)
    group.run(lambda: len(group.records) == 16)
    assert [record.offset for record in group.records[10:]] == [4, 5, 6, 7, 8, 9]


def test_the_source_knows_the_beginning_the_end_and_its_generation(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    group = group_on(topic)
    source = group.join()
    assert (source.generation(), source.end_offset(0)) == (-1, None)
    broker.send(topic, [b"a", b"b", b"c"])
    group.run(lambda: len(group.records) == 3)
    assert source.extent().beginnings == {0: 0}
    assert source.end_offset(0) == 3
    assert source.generation() >= 0


def test_a_commit_can_be_seen_in_the_group(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"a", b"b"])
    group = group_on(topic)
    source = group.join()
    group.run(lambda: len(group.records) == 2)
    source.commit({0: 1})
    source.commit({0: 2})
    source.close()
    assert broker.committed(topic) == 2


@pytest.mark.kafka
def test_the_position_goes_past_what_holds_no_record(apache: Broker) -> None:
    topic = apache.create_topic()
    with closing(Group(lambda: apache.source(topic))) as group:
        source = group.join()
        assert source.position(0) is None
        apache.send_transaction(topic, [b"a", b"b"])
        group.run(lambda: source.position(0) == 3)
        apache.send_transaction(topic, [b"c", b"d"], aborted=True)
        group.run(lambda: source.position(0) == 6)
        assert group.values() == [b"a", b"b"]
        assert source.end_offsets() == {0: 6}
        # What was read but is to be read again is not passed.
        apache.send(topic, [b"e"])
        group.run(lambda: source.position(0) == 7)
        source.seek(0, 6)
        assert source.position(0) == 6


def test_a_member_that_was_killed_is_replaced(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic(partitions=4)
    with _silent_member(broker, topic) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().split() == ["0", "1", "2", "3"]
        victim.kill()
    killed_at = time.monotonic()
    group = group_on(topic)
    successor = group.join()
    group.run(lambda: successor.assignment() == {0, 1, 2, 3} and not successor.paused())
    assert time.monotonic() - killed_at < 15


def test_large_records_pass(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    values = [bytes([number]) * (900 * KIB) for number in range(3)]
    broker.send(topic, values)
    # Smaller limits on a fetch hold nothing up: a record that exceeds them comes alone.
    group = group_on(topic, fetch_max_bytes=256 * KIB, partition_fetch_max_bytes=128 * KIB)
    group.join()
    group.run(lambda: len(group.records) == 3)
    assert group.values() == values


def test_topics_are_created_once(broker: Broker) -> None:
    topic, other = broker.create_topic(partitions=3), broker.create_topic() + "-other"
    with BrokerAdmin(broker.bootstrap) as admin:
        made = admin.create_topics([NewTopic(topic, 5), NewTopic(other, 2, config={"retention.ms": "60000"})])
        assert (made.created, made.existing) == ((other,), (topic,))
        assert admin.topic_partitions(topic) == [0, 1, 2]
        assert admin.topic_partitions(other) == [0, 1]


def test_a_missing_topic_is_named_and_never_created_in_passing(broker: Broker) -> None:
    topic = broker.create_topic() + "-missing"
    with BrokerAdmin(broker.bootstrap) as admin, RecordSink(broker.bootstrap) as sink:
        with pytest.raises(TopicMissing, match=topic):
            broker.source(topic)
        with pytest.raises(TopicMissing, match=topic):
            sink.send(topic, b"value")
        with pytest.raises(TopicMissing, match=topic):
            admin.extent(topic)
        with pytest.raises(TopicMissing, match=topic):
            admin.topic_partitions(topic)


def test_a_partition_without_a_leader_is_a_fault_that_passes(broker: Broker) -> None:
    topic = broker.create_topic()
    there, not_there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        for ask in (consumer.beginning_offsets, consumer.end_offsets):
            assert asked_offsets(ask, [there], 5_000) == {there: 0}
            with pytest.raises(BrokerUnavailable, match="no leader yet"):
                asked_offsets(ask, [there, not_there], 5_000)


def test_beginning_and_end_offsets_are_exact(broker: Broker) -> None:
    topic = broker.create_topic(partitions=2)
    with BrokerAdmin(broker.bootstrap) as admin, RecordSink(broker.bootstrap) as sink:
        extent = admin.extent(topic)
        assert (extent.beginnings, extent.ends) == ({0: 0, 1: 0}, {0: 0, 1: 0})
        for size in (1, 7, 30):
            sent = [sink.send(topic, b"value", key=b"always the same") for _ in range(size)]
            sink.flush(DEADLINE_S)
        partition = sent[0].result().partition
        assert admin.extent(topic).ends == {partition: 38, 1 - partition: 0}


def test_ping_tells_who_answers(broker: Broker) -> None:
    assert ping(broker.bootstrap) == Cluster(cluster_id=ping(broker.bootstrap).cluster_id, brokers=1)


def test_what_does_not_fit_is_refused_by_size(broker: Broker) -> None:
    topic = broker.create_topic()
    with RecordSink(broker.bootstrap, max_request_bytes=10 * KIB) as sink:
        with pytest.raises(RecordTooLarge, match=topic) as caught:
            sink.send(topic, b"x" * 11 * KIB)
        assert caught.value.size_bytes == 11 * KIB
        sink.flush(DEADLINE_S)


def test_records_that_cannot_be_decoded_are_fenced_in_and_passed(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    broker.send(topic, [b"before"])
    broker.send_undecodable(topic)
    broker.send(topic, [b"after"])
    group = group_on(topic)
    source = group.join()
    with pytest.raises(RecordsUnreadable) as caught:
        group.run(lambda: len(group.records) == 3)
    gap = caught.value
    assert (gap.topic, gap.partition, gap.offset, gap.next_offset) == (topic, 0, 2, 4)
    assert group.values() == [b"before", b"first of the batch"]
    assert source.take_rebalance().revoked == {0}
    group.positions[0] = gap.next_offset
    group.run(lambda: len(group.records) == 3)
    assert group.values() == [b"before", b"first of the batch", b"after"]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_stretch_that_cannot_be_decoded_ends_with_its_batch_however_large_it_is(
    broker: Broker, group_on: GroupOn, compression: str | None
) -> None:
    topic = broker.create_topic()
    broker.send_undecodable(topic, before=0, hidden=4_999, compression=compression)
    broker.send(topic, [b"after"])
    group = group_on(topic)
    source = group.join()
    with pytest.raises(RecordsUnreadable) as caught:
        group.run(lambda: group.records)
    assert (caught.value.position, caught.value.offset, caught.value.next_offset) == (0, 0, 5_000)
    assert source.take_rebalance().revoked == {0}
    group.positions[0] = caught.value.next_offset
    group.run(lambda: group.values() == [b"after"])


@pytest.mark.kafka
def test_a_stretch_that_cannot_be_decoded_begins_behind_what_holds_no_record(apache: Broker) -> None:
    topic = apache.create_topic()
    apache.send(topic, [b"before"])
    apache.send_transaction(topic, [b"never said"] * 3, aborted=True)
    apache.send_undecodable(topic, before=0)
    with closing(Group(lambda: apache.source(topic))) as group:
        group.join()
        with pytest.raises(RecordsUnreadable) as caught:
            group.run(lambda: len(group.records) > 1)
    assert (caught.value.offset, caught.value.next_offset) == (5, 7)
    assert caught.value.position in {1, 5}


def test_what_is_under_way_is_bounded(broker: Broker) -> None:
    topic = broker.create_topic()
    with RecordSink(broker.bootstrap, max_pending_bytes=100 * KIB) as sink:
        sent = [sink.send(topic, bytes(30 * KIB)) for _ in range(20)]
        assert sum(not future.done() for future in sent) <= 3
        oversized = sink.send(topic, bytes(200 * KIB))
        sink.flush(DEADLINE_S)
    assert oversized.result().offset == 20


def test_what_kafka_python_cannot_send_is_sent_empty(broker: Broker, group_on: GroupOn) -> None:
    topic = broker.create_topic()
    with RecordSink(broker.bootstrap) as sink:
        sink.send(topic, None, key=None, headers=[("null", None)]).result(DEADLINE_S)
    group = group_on(topic)
    group.join()
    group.run(lambda: group.records)
    assert (group.records[0].value, group.records[0].headers) == (b"", (("null", b""),))


@pytest.mark.kafka
def test_a_source_that_only_disconnects_stays_in_the_group(apache: Broker) -> None:
    topic = apache.create_topic()
    group = f"group-of-{topic}"
    members = Group(lambda: apache.source(topic))
    source = members.join()
    members.run(lambda: source.assignment() == {0})
    source.close(leave=False)
    assert (source.assignment(), source.paused(), source.generation()) == (frozenset(), frozenset(), -1)
    with closing(KafkaAdminClient(bootstrap_servers=apache.bootstrap)) as admin:
        assert len(admin.describe_groups([group])[group]["members"]) == 1


@pytest.mark.kafka
def test_two_members_share_four_partitions_and_the_last_one_takes_over(apache: Broker) -> None:
    """The embedded broker is no good for more than one member: its groups may never settle."""
    topic = apache.create_topic(partitions=4)
    with closing(Group(lambda: apache.source(topic))) as group, RecordSink(apache.bootstrap) as sink:
        first = group.join()
        group.run(lambda: group.shares() == [[0, 1, 2, 3]])
        second = group.join()
        group.run(lambda: [len(share) for share in group.shares()] == [2, 2])
        group.sources.remove(first)
        first.close()
        group.run(lambda: second.assignment() == {0, 1, 2, 3} and not second.paused())
        sent = [sink.send(topic, b"late", key=b"%d" % number) for number in range(30)]
        sink.flush(DEADLINE_S)
        assert {future.result().partition for future in sent} == {0, 1, 2, 3}
        group.run(lambda: len(group.records) == 30)


@pytest.mark.kafka
def test_members_whose_polls_miss_each_other_settle(apache: Broker) -> None:
    """The answer to a request to join comes while the other member polls; it must not be asked for again."""
    topic = apache.create_topic(partitions=4)
    with closing(Group(lambda: apache.source(topic))) as group:
        brief = group.join()
        group.run(lambda: brief.assignment() == {0, 1, 2, 3})
        long = group.join()
        before = brief.generation()
        deadline = time.monotonic() + DEADLINE_S
        while [len(share) for share in group.shares()] != [2, 2]:
            assert time.monotonic() < deadline
            brief.poll(0.002)
            long.poll(0.2)
        # One generation to take two partitions away, one to give them to the other.
        assert brief.generation() - before <= 3


@pytest.mark.kafka
def test_partitions_that_are_added_are_shared_though_the_leader_misses_the_answer(apache: Broker) -> None:
    """Only the partitions make the leader ask to join again, and the answer comes while the other member polls."""
    topic = apache.create_topic(partitions=2)
    with closing(Group(lambda: apache.source(topic))) as group:
        leader = group.join()
        group.run(lambda: leader.assignment() == {0, 1})
        group.join()
        group.run(lambda: [len(share) for share in group.shares()] == [1, 1])
        with closing(KafkaAdminClient(bootstrap_servers=apache.bootstrap)) as admin:
            admin.create_partitions({topic: 4})
        for source in group.sources:
            # Sooner than it would by itself.
            assert source._client is not None
            source._client.cluster.request_update()
        group.run(lambda: [len(share) for share in group.shares()] == [2, 2])


@pytest.mark.kafka
def test_what_stays_with_a_member_goes_on_during_a_rebalance(apache: Broker) -> None:
    topic = apache.create_topic(partitions=2)
    with closing(Group(lambda: apache.source(topic))) as group:
        first = group.join()
        group.run(lambda: first.assignment() == {0, 1} and not first.paused())
        group.join()
        group.run(lambda: group.shares() in ([[0], [1]], [[1], [0]]))
        (kept,) = first.assignment()
        assert first.take_rebalance() == Rebalance()
        assert first.paused() == frozenset()
        assert group.positions.keys() <= {kept}


@pytest.mark.kafka
def test_a_source_that_stops_polling_loses_its_partitions_and_is_told(apache: Broker) -> None:
    topic = apache.create_topic()
    broker_group = f"group-of-{topic}"
    with (
        closing(Group(lambda: apache.source(topic, max_poll_interval_ms=1_500))) as group,
        closing(KafkaAdminClient(bootstrap_servers=apache.bootstrap)) as admin,
    ):
        source = group.join()
        group.run(lambda: source.assignment() == {0} and not source.paused())
        deadline = time.monotonic() + DEADLINE_S
        while admin.describe_groups([broker_group])[broker_group]["members"]:
            assert time.monotonic() < deadline
        source.poll(0.1)
        assert source.take_rebalance().revoked == {0}
        group.run(lambda: source.assignment() == {0} and not source.paused())


@pytest.mark.kafka
def test_the_partitions_of_a_killed_member_move_after_the_session_timeout(apache: Broker) -> None:
    topic = apache.create_topic(partitions=4)
    with closing(Group(lambda: apache.source(topic))) as group, _silent_member(apache, topic) as victim:
        survivor = group.join()
        group.run(lambda: len(survivor.assignment()) == 2)
        victim.kill()
        killed_at = time.monotonic()
        group.run(lambda: survivor.assignment() == {0, 1, 2, 3})
        assert time.monotonic() - killed_at < 15


@pytest.mark.kafka
def test_a_member_that_was_dropped_while_it_rejoined_asks_for_its_positions_again(apache: Broker) -> None:
    topic = apache.create_topic(partitions=4)
    with closing(Group(lambda: apache.source(topic))) as group:
        dropped, absent = group.join(), group.join()
        group.run(lambda: [len(share) for share in group.shares()] == [2, 2] and not dropped.paused())
        before = dropped.assignment()
        # A third one makes the group wait for all; ``absent`` does not poll, so ``dropped`` is held in its rejoin.
        group.sources = [dropped, group.join()]
        group.run(lambda: _is_rejoining(dropped))
        _remove_from_group(apache, f"group-of-{topic}", dropped)
        group.sources.append(absent)
        deadline = time.monotonic() + DEADLINE_S
        while not (dropped.take_rebalance().assigned and not _is_rejoining(dropped)):
            assert time.monotonic() < deadline
            for source in group.sources:
                assert source.poll(0.1) == []
        kept = dropped.assignment() & before
        assert kept
        assert kept <= dropped.take_rebalance().assigned
        assert kept <= dropped.paused()


@pytest.mark.kafka
def test_records_over_the_limit_of_their_topic_are_refused_alone(apache: Broker) -> None:
    topic = apache.create_topic(partitions=3, config={"max.message.bytes": str(10 * KIB)})
    with RecordSink(apache.bootstrap) as sink:
        sent = [sink.send(topic, bytes(20 * KIB if n % 4 == 3 else 10), key=b"%d" % n) for n in range(40)]
        with pytest.raises(SendFailed, match=topic) as caught:
            sink.flush(DEADLINE_S)
        assert sum(caught.value.reasons.values()) == 10
        assert [isinstance(future.exception(), RecordTooLarge) for future in sent] == [n % 4 == 3 for n in range(40)]
        assert all(future.exception() is None for future in sent[::4])
        sink.send(topic, b"later")
        sink.flush(DEADLINE_S)


def _break_sequence(sink: RecordSink, place: TopicPartition) -> None:
    sink._producer._identity.set_sequence_number(place, 1_000)


def _skip_epoch(sink: RecordSink, place: TopicPartition) -> None:
    _set_epoch(sink, place, sink._producer._identity.producer_id_and_epoch.epoch + 1)


def _lose_id(sink: RecordSink, _: TopicPartition) -> None:
    sink._producer._identity.reset_producer_id()


def _pass_use(sink: RecordSink, _: TopicPartition) -> None:
    sink._producer._identity.transition_to_fatal_error(ProducerFencedError())


@pytest.mark.parametrize("meet", [_break_sequence, _skip_epoch, _lose_id, _pass_use])
def test_a_sink_sends_on_whatever_its_producer_met(
    broker: Broker, meet: Callable[[RecordSink, TopicPartition], None]
) -> None:
    topic = broker.create_topic()
    with RecordSink(broker.bootstrap, client_id=f"met-{topic}") as sink:
        for number in range(3):
            sink.send(topic, b"%d" % number).result(DEADLINE_S)
        meet(sink, TopicPartition(topic, 0))
        with suppress(BrokerUnavailable):
            sink.send(topic, b"perhaps").result(DEADLINE_S)
            sink.flush(DEADLINE_S)
        assert sink.send(topic, b"later").result(DEADLINE_S).offset >= 3
        assert len(_threads_of(f"met-{topic}")) == 1
    assert _threads_of(f"met-{topic}") == []


@pytest.mark.kafka
def test_a_sink_sends_on_when_another_producer_has_taken_over_its_id(apache: Broker) -> None:
    topic = apache.create_topic()
    with RecordSink(apache.bootstrap) as sink:
        sink.send(topic, b"before").result(DEADLINE_S)
        _set_epoch(sink, TopicPartition(topic, 0), 1)
        sink.send(topic, b"by the other one").result(DEADLINE_S)
        _set_epoch(sink, TopicPartition(topic, 0), 0)
        with pytest.raises(BrokerUnavailable, match="InvalidProducerEpoch"):
            sink.send(topic, b"fenced").result(DEADLINE_S)
        assert sink.send(topic, b"after").result(DEADLINE_S).offset == 2


@pytest.mark.kafka
def test_what_is_under_way_in_a_producer_past_use_fails_and_is_sent_again(
    own_apache: Broker, apache_node: ApacheKafka
) -> None:
    topic = own_apache.create_topic()
    with RecordSink(own_apache.bootstrap) as sink:
        sink.send(topic, b"before").result(DEADLINE_S)
        with _frozen(apache_node):
            under_way = sink.send(topic, b"under way")
            _pass_use(sink, TopicPartition(topic, 0))
            with pytest.raises(BrokerUnavailable):
                sink.flush(DEADLINE_S)
            assert isinstance(under_way.exception(), BrokerUnavailable)
        sink.send(topic, b"again")
        sink.flush(DEADLINE_S)


@pytest.mark.kafka
def test_a_sink_sends_on_after_an_outage_in_which_a_record_was_given_up(
    own_apache: Broker, apache_node: ApacheKafka
) -> None:
    topic = own_apache.create_topic()
    with RecordSink(own_apache.bootstrap, delivery_timeout_s=10.1) as sink:
        sink.send(topic, b"before").result(DEADLINE_S)
        with _frozen(apache_node):
            given_up = sink.send(topic, b"given up")
            wait_until(lambda: _has_requests_under_way(sink), what="the record to be with the broker")
            apache_node.kill()
        with pytest.raises(BrokerUnavailable):
            given_up.result(DEADLINE_S)
        apache_node.start()
        assert sink.send(topic, b"after").result(DEADLINE_S).offset > 0


@pytest.mark.kafka
def test_a_sink_that_gives_up_what_is_under_way_closes_quietly_and_wholly(
    own_apache: Broker, apache_node: ApacheKafka
) -> None:
    topic = own_apache.create_topic()
    sink = RecordSink(own_apache.bootstrap, client_id=f"quiet-{topic}")
    sink.send(topic, b"before").result(DEADLINE_S)
    port = int(own_apache.bootstrap.rpartition(":")[2])
    with _frozen(apache_node):
        under_way = sink.send(topic, b"under way")
        before = time.monotonic()
        sink.close(timeout_s=0.1)
        assert time.monotonic() - before < 2
        assert isinstance(under_way.exception(timeout=0), BrokerUnavailable)
        assert _threads_of(f"quiet-{topic}") == []
        connections = psutil.Process().net_connections("tcp")
        assert [one for one in connections if one.raddr and one.raddr.port == port] == []


@pytest.mark.kafka
def test_a_topic_that_cannot_be_created_says_why(apache: Broker) -> None:
    with BrokerAdmin(apache.bootstrap) as admin, pytest.raises(BrokerMisconfigured, match="eplication"):
        admin.create_topics([NewTopic(apache.create_topic() + "-wide", 1, replication=3)])


@pytest.mark.kafka
def test_a_partition_whose_offset_is_not_there_is_handed_back_to_be_placed(apache: Broker) -> None:
    """The embedded broker says nothing about such an offset, and nothing comes until it is reached."""
    topic = apache.create_topic()
    apache.send(topic, [b"only"])
    with closing(Group(lambda: apache.source(topic), positions={0: 999})) as group:
        source = group.join()
        group.run(lambda: source.assignment() == {0} and not source.paused())
        generation = source.generation()
        wait_until(lambda: source.poll(0.1) == [] and source.paused() == {0}, what="the partition to be paused")
        assert source.take_rebalance() == Rebalance(assigned=frozenset({0}), revoked=frozenset({0}))
        source.seek(0, 0)
        source.resume([0])
        group.run(lambda: group.records)
        assert source.generation() == generation


@pytest.mark.kafka
def test_a_restart_of_the_broker_loses_nothing(own_apache: Broker, apache_node: ApacheKafka) -> None:
    topic = own_apache.create_topic()
    with (
        closing(Group(lambda: own_apache.source(topic))) as group,
        RecordSink(own_apache.bootstrap) as sink,
        capture_logs() as events,
    ):
        source = group.join()
        sink.send(topic, b"before")
        sink.flush(DEADLINE_S)
        group.run(lambda: len(group.records) == 1)
        assert events == []
        apache_node.kill()
        group.run(lambda: [event["event"] for event in events] == ["kafka_unreachable"])
        assert source.assignment() == {0}
        assert events[0]["error"] == source.problem()
        assert "KafkaConnectionError" in str(source.problem())
        sink.send(topic, b"meanwhile")
        with pytest.raises(BrokerUnavailable):
            sink.flush(0.2)
        apache_node.start()
        sink.flush(DEADLINE_S)
        sink.send(topic, b"after")
        sink.flush(DEADLINE_S)
        group.run(lambda: len(group.records) == 3)
        assert group.values() == [b"before", b"meanwhile", b"after"]
        assert events[-1]["event"] == "kafka_reachable"
        assert source.problem() is None


def test_a_broker_that_is_not_there_is_reported_soon() -> None:
    before = time.monotonic()
    attempts = [lambda: RecordSource(NOBODY, "topic", "group"), lambda: RecordSink(NOBODY), lambda: BrokerAdmin(NOBODY)]
    with ThreadPoolExecutor() as pool:
        for attempt in [pool.submit(attempt) for attempt in attempts]:
            assert isinstance(attempt.exception(), BrokerUnavailable)
            assert NOBODY in str(attempt.exception())
    assert time.monotonic() - before < 8


def test_ping_gives_up_in_the_time_it_is_given() -> None:
    before = time.monotonic()
    with pytest.raises(BrokerUnavailable):
        ping(NOBODY, timeout_s=0.5)
    assert time.monotonic() - before < 2


def _poll_until(source: RecordSource, condition: Callable[[], bool], wanted: int = 0) -> list[Record]:
    records: list[Record] = []
    deadline = time.monotonic() + DEADLINE_S
    while not (condition() and len(records) >= wanted):
        assert time.monotonic() < deadline
        records += source.poll(0.1)
    return records


@contextmanager
def _frozen(node: ApacheKafka) -> Iterator[None]:
    """The broker keeps its connections and answers nothing."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if node.pid is not None:
            os.kill(node.pid, signal.SIGCONT)


def _set_epoch(sink: RecordSink, place: TopicPartition, epoch: int) -> None:
    identity = sink._producer._identity
    identity.set_producer_id_and_epoch(ProducerIdAndEpoch(identity.producer_id_and_epoch.producer_id, epoch))
    identity.set_sequence_number(place, 0)


def _threads_of(client_id: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(client_id)]


def _has_requests_under_way(sink: RecordSink) -> bool:
    return any(connection.in_flight_requests for connection in sink._producer._connections._conns.values())


def _silent_member(broker: Broker, topic: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.silent_member", broker.bootstrap, topic, f"group-of-{topic}"],
        stdout=subprocess.PIPE,
        text=True,
    )


def _is_rejoining(source: RecordSource) -> bool:
    assert source._consumer is not None
    return source._consumer.group_metadata().state is not MemberState.STABLE


def _remove_from_group(broker: Broker, group: str, source: RecordSource) -> None:
    assert source._consumer is not None
    member = MemberToRemove(member_id=source._consumer.group_metadata().member_id)
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        admin.remove_group_members(group, [member])
