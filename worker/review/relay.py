"""The relay: takes what is to be told about review tasks out of the outbox and settles it, one channel a thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import structlog

from worker.broker.errors import BrokerUnavailable
from worker.review.task_message import MessageTooLarge, task_message
from worker.runtime.metrics import OutboxOutcome
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.leases import Leases
from worker.store.outbox import LeaseRequest, Outbox, OutboxEvent
from worker.store.review_tasks import REMOVED

IDLE_LOOK_S = 1.0
# Longer than a step of an attempt may take; what a worker that died had at hand is told again after this time.
LEASE_S = 45.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """An event at hand, and what is sent for it: JSON as the contract ``gasp.review-task.v1`` has it."""

    event: OutboxEvent
    body: bytes


@dataclass(frozen=True, slots=True)
class RelayPolicy:
    """Who relays, how long a task waits for its supporting passages, and how large a message may be."""

    owner: str
    wait_s: float
    max_message_bytes: int


class Relay(ABC):
    """Sends the events of its channel, each until it is settled: at least once, and with the same id every time.

    An event is settled for good in the database only after it was sent, so that a worker may die at any moment. What
    keeps all of them from being sent (database, broker) is waited for, and does not count as an attempt.
    """

    channel: ClassVar[str]
    batch_events: ClassVar[int]
    max_attempts: ClassVar[int]

    def __init__(
        self,
        *,
        outbox: Outbox,
        leases: Leases,
        policy: RelayPolicy,
        stop: Stop,
        telemetry: Telemetry,
        within_s: float,
    ) -> None:
        self._outbox = outbox
        self._leases = leases
        self._policy = policy
        self._stop = stop
        self._telemetry = telemetry
        self._part = f"review_{self.channel}"
        self._retry = RetryPolicy(stop, telemetry, part=self._part, within_s=within_s)

    def run(self) -> None:
        """Send what waits until a stop is asked for. Raises faults that do not pass, and Stopped."""
        try:
            while not self._stop.is_set():
                if not self._retry.call(self.run_once, name=self._part):
                    self._stop.wait(IDLE_LOOK_S)
        finally:
            self._telemetry.liveness.excuse(self._part)
            self.close()

    def run_once(self) -> bool:
        """Claim events and settle them; false if none is due. Raises StoreUnavailable or BrokerUnavailable."""
        policy = self._policy
        wanted = LeaseRequest(self.channel, policy.owner, self.batch_events, LEASE_S, self.max_attempts, policy.wait_s)
        events = self._outbox.claim(wanted)
        messages = tuple(self._messages(events))
        try:
            self._send(messages)
        except BrokerUnavailable:
            # Those that are settled already are no longer ours and stay as they are.
            for message in messages:
                self._leases.release(message.event)
            raise
        return bool(events)

    @abstractmethod
    def close(self) -> None:
        """Close what was opened for sending."""

    @abstractmethod
    def _send(self, messages: Sequence[TaskMessage]) -> None:
        """Send the messages and settle each event. Raises BrokerUnavailable if those not settled are to be kept."""

    def _messages(self, events: Sequence[OutboxEvent]) -> Iterator[TaskMessage]:
        """What is to be sent; events for which nothing can be sent are failed."""
        for event in events:
            try:
                if event.task is not None:
                    yield TaskMessage(event, task_message(event.task, self._policy.max_message_bytes))
                else:
                    self._fail(event, REMOVED)
            except MessageTooLarge as error:
                self._fail(event, str(error))

    def _finish(self, messages: Sequence[TaskMessage], outcome: OutboxOutcome = OutboxOutcome.SENT) -> None:
        if not messages:
            return
        self._outbox.finish([message.event for message in messages])
        self._telemetry.metrics.relayed(self.channel, outcome, len(messages))
        for message in messages:
            log.info("review_task_told", **self._facts(message.event), outcome=outcome)

    def _fail(self, event: OutboxEvent, reason: str) -> None:
        self._leases.fail(event, reason)
        self._telemetry.metrics.relayed(self.channel, OutboxOutcome.FAILED, 1)
        log.error("review_task_not_told", **self._facts(event), attempts=event.attempts, reason=reason)

    def _facts(self, event: OutboxEvent) -> dict[str, str]:
        return {"channel": self.channel, "event_id": str(event.event_id)}
