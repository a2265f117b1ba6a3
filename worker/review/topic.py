"""Review tasks to their topic, each once as far as a topic can have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import ClassVar

from schemas.headers import header_texts
from schemas.review_task import REVIEW_TASK_SCHEMA
from worker.broker.admin import BrokerAdmin
from worker.broker.errors import BrokerError, BrokerMisconfigured, BrokerUnavailable, RecordTooLarge, SendFailed
from worker.broker.scan import TopicScan
from worker.broker.sink import Place, RecordSink
from worker.ingest.topics import MESSAGE_FRAME_BYTES
from worker.review.relay import LEASE_S, Relay, RelayPolicy, TaskMessage
from worker.rules.records import Record
from worker.runtime.metrics import OutboxOutcome
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.channels import KAFKA
from worker.settings.security import kafka_security
from worker.settings.settings import Settings
from worker.store.leases import Leases
from worker.store.outbox import Outbox, OutboxEvent, TopicEnds

EVENT_ID_HEADER = "event-id"
SCHEMA_HEADER = "schema"
# Short enough for a stop to wait for it.
DELIVERY_TIMEOUT_S = 12.0
FLUSH_TIMEOUT_S = 14.0


class TopicRelay(Relay):
    """Sends to the topic of review tasks and settles an event when the broker has acknowledged it.

    Before an event is sent for the first time, the ends of the topic are noted beside it. One that bears such a note
    may have been sent by an attempt that was broken off: the topic is read from there on, and if the event is found it
    is settled without being sent again. A second record of an event can come about only if a process, or a request on
    its way to the broker, is frozen between note and sending, and goes on after another one has looked.

    If a person must repair something, such as a missing topic, it waits as for a broker that is away: scoring goes on.
    """

    channel: ClassVar[str] = KAFKA
    batch_events: ClassVar[int] = 16
    # Only workers that died with it count.
    max_attempts: ClassVar[int] = 100

    def __init__(
        self, settings: Settings, outbox: Outbox, leases: Leases, owner: str, stop: Stop, telemetry: Telemetry
    ) -> None:
        super().__init__(
            outbox=outbox,
            leases=leases,
            policy=RelayPolicy(owner, settings.review_wait_s, settings.max_message_bytes),
            stop=stop,
            telemetry=telemetry,
            within_s=settings.work_timeout_s,
        )
        self._topic = settings.review_tasks_topic
        self._bootstrap = settings.kafka_bootstrap_servers
        self._security = kafka_security(settings)
        self._sink: RecordSink | None = None

    def close(self) -> None:
        """Disconnect."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _send(self, messages: Sequence[TaskMessage]) -> None:
        if not messages:
            return
        with _waited_out():
            ends = self._ends()
            arrived = self._arrived([message.event for message in messages], ends)
            found = [message for message in messages if str(message.event.event_id) in arrived]
            self._finish(found, OutboxOutcome.FOUND)
            missing = [message for message in messages if str(message.event.event_id) not in arrived]
            leased = {event.id for event in self._outbox.note_sending([one.event for one in missing], ends, LEASE_S)}
            self._deliver([message for message in missing if message.event.id in leased])

    def _deliver(self, messages: Sequence[TaskMessage]) -> None:
        """Send, wait for the broker, settle what it has and what it refuses, and raise what is in the way of others."""
        if not messages:
            return
        sent = [(message, self._queue(message)) for message in messages]
        # Each future knows its own fault.
        with suppress(SendFailed, BrokerUnavailable):
            self._opened().flush(FLUSH_TIMEOUT_S)
        faults = [(message, _fault(place)) for message, place in sent]
        self._finish([message for message, fault in faults if fault is None])
        for message, fault in faults:
            if isinstance(fault, RecordTooLarge):
                self._fail(message.event, f"too large: {fault.size_bytes} bytes")
        for _, fault in faults:
            if fault is not None and not isinstance(fault, RecordTooLarge):
                raise fault

    def _queue(self, message: TaskMessage) -> Future[Place]:
        headers = (
            (EVENT_ID_HEADER, str(message.event.event_id).encode()),
            (SCHEMA_HEADER, REVIEW_TASK_SCHEMA.encode()),
        )
        try:
            return self._opened().send(self._topic, message.body, key=_key(message.event), headers=headers)
        except BrokerError as error:
            refused: Future[Place] = Future()
            refused.set_exception(error)
            return refused

    def _opened(self) -> RecordSink:
        if self._sink is None:
            self._sink = RecordSink(
                self._bootstrap,
                client_id=f"{self._policy.owner}-review",
                delivery_timeout_s=DELIVERY_TIMEOUT_S,
                max_request_bytes=self._policy.max_message_bytes + MESSAGE_FRAME_BYTES,
                security=self._security,
            )
        return self._sink

    def _ends(self) -> TopicEnds:
        with BrokerAdmin(self._bootstrap, security=self._security) as admin:
            extent = admin.extent(self._topic)
        return TopicEnds(self._topic, extent.topic_id, extent.ends)

    def _arrived(self, events: Sequence[OutboxEvent], ends: TopicEnds) -> set[str]:
        """The ids of those events that an earlier attempt has brought into the topic."""
        noted = {str(event.event_id): event.sent_after for event in events if event.sent_after is not None}
        found: set[str] = set()
        if not noted:
            return found
        scan = TopicScan(
            self._bootstrap, self._topic, security=self._security, since=_since(list(noted.values()), ends)
        )
        for item in scan:
            self._retry.beat()
            if isinstance(item, Record):
                found |= noted.keys() & {header_texts(item.headers).get(EVENT_ID_HEADER)}
        return found


def _since(noted: Sequence[TopicEnds], ends: TopicEnds) -> Mapping[int, int]:
    """The earliest of the noted ends; none of a topic that is another one by now."""
    if any((one.topic, one.topic_id) != (ends.topic, ends.topic_id) for one in noted):
        return {}
    return {partition: min(one.ends.get(partition, 0) for one in noted) for partition in ends.ends}


def _key(event: OutboxEvent) -> bytes:
    """The interaction, so that all that is told about it stays in one partition and in order."""
    return f"{event.task.app}/{event.task.interaction_id}".encode() if event.task else b""


def _fault(place: Future[Place]) -> BrokerError | None:
    if not place.done():
        return BrokerUnavailable(f"a review task is not acknowledged after {FLUSH_TIMEOUT_S:g} s")
    error = place.exception()
    return error if error is None or isinstance(error, BrokerError) else BrokerUnavailable(type(error).__name__)


@contextmanager
def _waited_out() -> Iterator[None]:
    try:
        yield
    except BrokerMisconfigured as error:
        raise BrokerUnavailable(str(error)) from error
