"""Sends the load's batches: each record on its own, or all in one transaction that is committed or aborted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.partitioner import Partitioner
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.transaction_manager import TransactionManager

from tests.soak.expectation import Place
from tests.soak.messages import Message
from worker.broker.client import connection_settings
from worker.broker.errors import BrokerError
from worker.broker.producer import Producer

# What a send may raise while the broker is away; whatever it was, the sender is past use.
FAULTS = (BrokerError, KafkaError)
WAIT_S = 10.0


class Keys(Partitioner):  # type: ignore[misc]  # kafka-python ships no types
    """Which partition a key has: one of those that there were when it first came, for good.

    So all messages of one interaction have one order, also when partitions are added. ``partitions`` are those that
    the producers know of by now.
    """

    def __init__(self) -> None:
        self.partitions: list[int] = []
        self._chosen: dict[bytes, int] = {}

    def partition(self, topic: str, key: bytes, *_: object) -> int:
        """As kafka-python asks for it; the last argument knows the cluster."""
        self.partitions = sorted(_[-1].partitions_for_topic(topic))  # type: ignore[attr-defined]  # no types
        return self._chosen.setdefault(key, self.partitions[crc32(key) % len(self.partitions)])

    def choose(self, key: bytes, partition: int) -> None:
        """Let a key have this partition."""
        self._chosen[key] = partition


class Sender:
    """One producer. After one of FAULTS, or a place that is missing, close it and open another."""

    def __init__(self, bootstrap: str, topic: str, keys: Keys) -> None:
        self._topic = topic
        self._producer = Producer(_settings(bootstrap, keys))

    def send(self, batch: Sequence[Message]) -> list[Place | None]:
        """Where each message lies, as far as the broker said so in time."""
        deadline = time.monotonic() + WAIT_S
        futures: list[FutureRecordMetadata] = []
        with suppress(*FAULTS):
            futures.extend(self._queue(one) for one in batch)
        return [*(_place(one, deadline) for one in futures), *[None] * (len(batch) - len(futures))]

    def close(self) -> None:
        """Disconnect; what is under way may arrive all the same."""
        self._producer.close()

    def _queue(self, message: Message) -> FutureRecordMetadata:
        value = b"" if message.value is None and not message.key else message.value
        return self._producer.send(self._topic, value, message.key, [(name, at or b"") for name, at in message.headers])


class TransactionalSender(Sender):
    """As above, in transactions. Opening it aborts what the one before it left open."""

    def __init__(self, bootstrap: str, topic: str, keys: Keys) -> None:
        self._topic = topic
        # Long enough for a broker that restarts, short enough for a transaction that nobody comes back to.
        transactional = {"transactional_id": "soak", "transaction_timeout_ms": 10_000}
        self._producer = Producer(_settings(bootstrap, keys) | transactional)
        self._kafka: Any = self._producer._producer
        self._transactions: Any = self._producer._identity
        # The worker's own mends what no transaction survives.
        self._transactions.__class__ = TransactionManager
        try:
            self._kafka.init_transactions()
        except BaseException:
            self.close()
            raise

    def commit(self, batch: Sequence[Message]) -> list[Place]:
        """Where each message lies. Raises FAULTS, and then they may lie there all the same."""
        return self._transact(batch, self._transactions.begin_commit)

    def abort(self, batch: Sequence[Message]) -> list[Place]:
        """Where each message would lie. Raises FAULTS; whatever happens, nobody may ever read one."""
        return self._transact(batch, self._transactions.begin_abort)

    def _transact(self, batch: Sequence[Message], end: Any) -> list[Place]:
        self._kafka.begin_transaction()
        places = [place for place in self.send(batch) if place is not None]
        if len(places) < len(batch):
            raise KafkaTimeoutError(f"{len(batch) - len(places)} of {len(batch)} records were not acknowledged")
        ended = end()
        self._kafka._sender.wakeup()
        # kafka-python's own commit_transaction waits without an end.
        if not ended.wait(timeout_ms=WAIT_S * 1000):
            raise KafkaTimeoutError("the end of a transaction was not acknowledged")
        return places


def _settings(bootstrap: str, keys: Keys) -> dict[str, Any]:
    return {
        **connection_settings(bootstrap, "soak-load", None),
        "delivery_timeout_ms": 30_000,
        "max_block_ms": 5_000,
        "max_request_size": 8 * 1024 * 1024,
        "batch_size": 128 * 1024,
        "linger_ms": 5,
        # Partitions that are added get messages soon.
        "metadata_max_age_ms": 1_000,
        "partitioner": keys,
        "metrics_enabled": False,
    }


def _place(future: FutureRecordMetadata, deadline: float) -> Place | None:
    try:
        found = future.get(max(0.0, deadline - time.monotonic()))
    except FAULTS:
        return None
    return found.partition, found.offset
