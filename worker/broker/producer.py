"""kafka-python's idempotent producer, which no refusal and no outage makes useless."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.transaction_manager import TransactionManager, TransactionState

from worker.broker.client import open_client

CLOSE_TIMEOUT_S = 5.0


class Producer:
    """Sends records in order, each once, and waits for all replicas. Threads may share it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Connect with kafka-python's ``settings``. Raises BrokerUnavailable within seconds, BrokerMisconfigured."""
        idempotent = {"acks": "all", "enable_idempotence": True}
        self._producer, client = open_client(KafkaProducer, {**settings, **idempotent})
        self._connections = client._manager  # noqa: SLF001 - nothing public closes them from another thread
        self._identity: TransactionManager = self._producer._transaction_manager  # noqa: SLF001 - as below
        # kafka-python makes its own and takes none from outside.
        self._identity.__class__ = Identity

    @property
    def fatal_error(self) -> Exception | None:
        """Why it will never send again, or None. Everything given to it is refused then."""
        error: Exception | None = self._identity.last_error if self._identity.has_fatal_error() else None
        return error

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]]
    ) -> FutureRecordMetadata:
        """Queue one record. Raises what kafka-python raises; once closed, IllegalStateError."""
        return self._producer.send(topic, value, key=key, headers=headers)

    def close(self) -> None:
        """Fail everything that is under way, and disconnect. The second time does nothing."""
        sender = self._producer._sender  # noqa: SLF001 - the public close waits, raises, and then leaves all of it open
        sender.force_close()
        with suppress(RuntimeError):  # the loop has ended already
            # The sender may be waiting for an answer of a broker that gives none.
            self._connections.call_soon(self._connections.close)
        sender.join(CLOSE_TIMEOUT_S)
        with suppress(KafkaTimeoutError):  # the sender is slow to end; it fails what is under way when it does
            self._producer.close(timeout=0)


class Identity(TransactionManager):  # type: ignore[misc]  # kafka-python ships no types
    """The producer's id and its sequence numbers. What the broker refuses costs the id and nothing else.

    kafka-python 3.0 gives the producer up when one record is refused for good, and refuses all the others with it.
    It also takes the id away when a record was given up in an outage, and then waits for another one without asking.
    """

    _current_state: TransactionState

    def classify_batch_error(self, error: Exception, batch: ProducerBatch, log_start_offset: int = -1) -> str:
        """What a failed batch costs: nothing or the id, never the producer."""
        found: str = super().classify_batch_error(error, batch, log_start_offset=log_start_offset)
        # The sequence has a hole where the refused batch was; a new id starts a new sequence.
        return found if found == self.ERROR_CLASS_RETRIABLE else self.ERROR_CLASS_NEEDS_PRODUCER_ID_RESET

    def reset_producer_id(self) -> None:
        """Forget the id; kafka-python asks for one in this state."""
        with self._lock:
            super().reset_producer_id()
            if self._current_state is TransactionState.READY:
                self._current_state = TransactionState.UNINITIALIZED
