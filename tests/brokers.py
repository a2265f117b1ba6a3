"""Brokers for the tests: the embedded one, and Apache Kafka where Java and Maven can be had."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.apache_kafka import ApacheKafka, KafkaCannotRun, apache_kafka
from tests.shared_kafka import shared_apache_kafka
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.embedded.broker import embedded_broker
from worker.rules.records import Record

DEADLINE_S = 90.0


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker, and the settings of a consumer group that suit it."""

    name: str
    bootstrap: str
    session_timeout_ms: int

    def create_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic of a name that no other test has."""
        topic = f"test-{uuid.uuid4().hex[:12]}"
        with BrokerAdmin(self.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, partitions, config=config or {})])
        return topic

    def source(self, topic: str, **settings: int) -> RecordSource:
        """A source in a group named after the topic. Takes the whole numbers among the settings of a source."""
        settings = {"session_timeout_ms": self.session_timeout_ms} | settings
        return RecordSource(self.bootstrap, topic, f"group-of-{topic}", **settings)  # type: ignore[arg-type]  # the others are not numbers

    def send(self, topic: str, values: Sequence[bytes]) -> None:
        """Send values without a key and wait until they are there."""
        with RecordSink(self.bootstrap) as sink:
            for value in values:
                sink.send(topic, value)
            sink.flush(DEADLINE_S)

    def send_transaction(self, topic: str, values: Sequence[bytes], *, aborted: bool = False) -> None:
        """Send values in one transaction, which leaves a marker behind them that is no record."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=f"of-{uuid.uuid4().hex}")
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value)
        producer.flush()
        if aborted:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        producer.close()

    def committed(self, topic: str, group: str = "") -> int | None:
        """The offset that a group (that of ``source``) has committed to Kafka for partition 0."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=group or f"group-of-{topic}", enable_auto_commit=False
        )
        try:
            offset: int | None = consumer.committed(TopicPartition(topic, 0), timeout_ms=int(DEADLINE_S * 1000))
            return offset
        finally:
            consumer.close()

    def send_undecodable(self, topic: str, *, before: int = 1, hidden: int = 1, compression: str | None = None) -> None:
        """Send a batch in which one record has a header name that is not text, and hides those behind it."""

        class NotText(str):
            __slots__ = ()

            def encode(self, *_: object) -> bytes:
                return b"\xff\xfe"

        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap, linger_ms=60_000, batch_size=900_000, compression_type=compression
        )
        for _ in range(before):
            producer.send(topic, b"first of the batch")
        producer.send(topic, b"poison", headers=[(NotText("name"), b"value")])
        for _ in range(hidden):
            producer.send(topic, b"hidden behind it")
        producer.close()


@dataclass(slots=True)
class Group:
    """Sources of one group, polled in turn. Each partition goes on where it was left, as if from Postgres."""

    open_source: Callable[[], RecordSource]
    sources: list[RecordSource] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)

    def join(self) -> RecordSource:
        """One more member."""
        self.sources.append(self.open_source())
        return self.sources[-1]

    def close(self) -> None:
        """Close those that are left."""
        for source in self.sources:
            source.close()

    def run(self, until: Callable[[], object]) -> None:
        """Poll until the condition holds; fail after DEADLINE_S."""
        deadline = time.monotonic() + DEADLINE_S
        while not until():
            assert time.monotonic() < deadline, f"after {DEADLINE_S} s: {self.shares()}, {len(self.records)} records"
            for source in self.sources:
                self._step(source)

    def shares(self) -> list[list[int]]:
        """The partitions of each member."""
        return [sorted(source.assignment()) for source in self.sources]

    def values(self) -> list[bytes | None]:
        """The values of all the records so far."""
        return [record.value for record in self.records]

    def _step(self, source: RecordSource) -> None:
        for record in source.poll(0.1, 100):
            self.records.append(record)
            self.positions[record.partition] = record.offset + 1
        for partition in source.take_rebalance().assigned:
            source.seek(partition, self.positions.get(partition, 0))
            source.resume([partition])


@pytest.fixture(scope="session")
def tansu() -> Iterator[Broker]:
    """The embedded broker."""
    with embedded_broker() as bootstrap:
        # With two seconds and more, a member that was killed holds up the next one for three.
        yield Broker("tansu", bootstrap, session_timeout_ms=1_200)


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Apache Kafka, one node for all processes of the run. Tests that use it carry the marker ``kafka``."""
    own = tmp_path_factory.getbasetemp()
    # The directories of processes that run side by side are in that of the run.
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "kafka"
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack, _skipping():
        yield Broker("apache", stack.enter_context(shared_apache_kafka(folder)), session_timeout_ms=6_000)


@pytest.fixture(scope="module")
def apache_node() -> Iterator[ApacheKafka]:
    """An Apache Kafka node that a test may end and start again."""
    with ExitStack() as stack, _skipping():
        yield stack.enter_context(apache_kafka())


@pytest.fixture(scope="module")
def own_apache(apache_node: ApacheKafka) -> Broker:
    """``apache_node`` as a broker."""
    return Broker("apache", apache_node.bootstrap, session_timeout_ms=6_000)


@contextmanager
def _skipping() -> Iterator[None]:
    try:
        yield
    except KafkaCannotRun as error:
        pytest.skip(f"Apache Kafka cannot run here: {error}")


@pytest.fixture(scope="session", params=["tansu", pytest.param("apache", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Each of the two in turn."""
    chosen: Broker = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a broker that is not there, where that is not what a test is about."""
    monkeypatch.setattr("worker.broker.client.OPEN_TIMEOUT_S", 1.0)


@pytest.fixture
def group_on(broker: Broker) -> Iterator[Callable[[str], Group]]:
    """Makes an empty group on a topic; its members are closed after the test."""
    with ExitStack() as stack:

        def group(topic: str, **settings: int) -> Group:
            return stack.enter_context(closing(Group(lambda: broker.source(topic, **settings))))

        yield group
