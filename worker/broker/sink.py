"""The sink: sends records, and says at the flush whether the broker has them all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, NamedTuple, Self

import structlog
from kafka import errors as kafka_errors

from worker.broker.admin import BrokerAdmin
from worker.broker.client import AWAY, broker_error, connection_settings
from worker.broker.errors import BrokerError, BrokerUnavailable, RecordTooLarge, SendFailed, counted
from worker.broker.producer import Producer

DELIVERY_TIMEOUT_S = 30.0
# How long kafka-python may look for a topic's partitions while the broker is away.
METADATA_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0
MAX_PENDING_BYTES = 32 * 1024 * 1024

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)

log = structlog.get_logger(__name__)


class Place(NamedTuple):
    """Where a record was stored."""

    topic: str
    partition: int
    offset: int


class RecordSink:
    """An idempotent producer that waits for all replicas. Threads may share it; close it or use it in a ``with``.

    A record that is refused leaves the others alone, and whatever went wrong, what is sent later has a chance: if the
    producer inside is past use, what is under way fails, and the next ``send`` opens another.

    What is under way is bounded by ``max_pending_bytes``: ``send`` waits when it is reached, since kafka-python itself
    buffers without a limit. ``compression`` is None, gzip, snappy, lz4 or zstd.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "gasp-sink",
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
        max_request_bytes: int = 8 * 1024 * 1024,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        compression: str | None = None,
        security: Mapping[str, object] | None = None,
    ) -> None:
        """Connect. Raises BrokerUnavailable within seconds, BrokerMisconfigured."""
        self._bootstrap = bootstrap
        self._security = security
        self._delivery_timeout_s = delivery_timeout_s
        self._pending = _Pending(max_pending_bytes)
        self._topics: set[str] = set()
        self._settings: dict[str, Any] = {
            **connection_settings(bootstrap, client_id, security),
            "delivery_timeout_ms": int(delivery_timeout_s * 1000),
            "max_block_ms": int(METADATA_TIMEOUT_S * 1000),
            "max_request_size": max_request_bytes,
            "compression_type": compression,
            # kafka-python's 16 KiB hold few messages, and its speed is a matter of batches.
            "batch_size": 128 * 1024,
            "linger_ms": 5,
            "metrics_enabled": False,
        }
        self._changing = threading.Lock()
        self._closed = False
        self._producer = Producer(self._settings)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> Future[Place]:
        """Send one record; the future has its place, or the error as ``flush`` would raise it.

        kafka-python can send neither a null header nor a record with neither key nor value: both become empty bytes.
        Raises RecordTooLarge, TopicMissing, BrokerUnavailable or BrokerMisconfigured if it cannot even be queued.
        """
        self._check(topic)
        # Before there is room: a producer past use may be what takes it up.
        producer = self._usable_producer()
        if value is None and key is None:
            value = b""
        filled = [(name, content if content is not None else b"") for name, content in headers]
        size = len(value or b"") + len(key or b"") + sum(len(name) + len(content) for name, content in filled)
        self._pending.enter(size, self._delivery_timeout_s)
        done: Future[Place] = Future()
        try:
            sent = producer.send(topic, value, key, filled)
        except Exception as error:
            self._pending.leave(size)
            raise _refusal(topic, size, error) from error
        sent.add_callback(lambda at: self._delivered(done, size, Place(at.topic, at.partition, at.offset)))
        sent.add_errback(lambda error: self._failed(done, size, topic, error))
        return done

    def flush(self, timeout_s: float) -> None:
        """Wait until everything that was sent is acknowledged or refused; forget what was refused.

        Raises BrokerUnavailable if something is not acknowledged after ``timeout_s`` or was given up by then (it may
        arrive all the same; send it again), and SendFailed if something was refused for good.
        """
        if not self._pending.drained(timeout_s):
            raise BrokerUnavailable(f"records are not acknowledged after {timeout_s:g} s; {AWAY}")
        transient, permanent = self._pending.take_failures()
        if permanent:
            raise SendFailed(permanent)
        if transient:
            raise BrokerUnavailable(f"records were not acknowledged ({counted(transient)}); {AWAY}")

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait up to ``timeout_s`` for what is under way, then disconnect. What is left fails; nothing is raised."""
        self._pending.drained(timeout_s)
        with self._changing:
            self._closed = True
            self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, topic: str) -> None:
        """Ask for a topic once, because kafka-python looks for a missing one until its time is up."""
        if topic not in self._topics:
            with BrokerAdmin(self._bootstrap, security=self._security) as admin:
                admin.topic_partitions(topic)
            self._topics.add(topic)

    def _usable_producer(self) -> Producer:
        with self._changing:
            fatal_error = self._producer.fatal_error
            if fatal_error is not None and not self._closed:
                log.warning("kafka_producer_reopened", error=type(fatal_error).__name__)
                self._producer.close()
                self._producer = Producer(self._settings)
            return self._producer

    def _delivered(self, done: Future[Place], size: int, place: Place) -> None:
        done.set_result(place)
        self._pending.leave(size)

    def _failed(self, done: Future[Place], size: int, topic: str, error: Exception) -> None:
        refusal = _refusal(topic, size, error)
        done.set_exception(refusal)
        self._pending.leave(size, (topic, type(error).__name__), transient=isinstance(refusal, BrokerUnavailable))


def _refusal(topic: str, size: int, error: Exception) -> BrokerError:
    if isinstance(error, _TOO_LARGE):
        return RecordTooLarge(topic, size)
    return broker_error(error, f"cannot send to topic {topic}")


class _Pending:
    """Counts what is under way, and keeps what failed until the flush."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._bytes = 0
        self._records = 0
        self._transient: Counter[tuple[str, str]] = Counter()
        self._permanent: Counter[tuple[str, str]] = Counter()

    def enter(self, size: int, timeout_s: float) -> None:
        """Wait for room. A record larger than all the room may go alone."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(size), timeout_s):
                raise BrokerUnavailable(f"no room to send: nothing was acknowledged for {timeout_s:g} s; {AWAY}")
            self._bytes += size
            self._records += 1

    def _has_room(self, size: int) -> bool:
        return not self._records or self._bytes + size <= self._max_bytes

    def leave(self, size: int, failure: tuple[str, str] | None = None, *, transient: bool = False) -> None:
        with self._changed:
            self._bytes -= size
            self._records -= 1
            if failure is not None:
                (self._transient if transient else self._permanent)[failure] += 1
            self._changed.notify_all()

    def drained(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._records, timeout_s)

    def take_failures(self) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
        """Transient and permanent ones, each as (topic, error): count."""
        with self._changed:
            failures = dict(self._transient), dict(self._permanent)
            self._transient.clear()
            self._permanent.clear()
            return failures
