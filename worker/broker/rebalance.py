"""Which partitions came and went. The notes are taken on kafka-python's own thread, so nothing else is done here."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.errors import FencedInstanceIdError
from kafka.future import Future


@dataclass(frozen=True, slots=True)
class Rebalance:
    """What changed since it was last asked. See to ``revoked`` first: a partition in both was away in between."""

    assigned: frozenset[int] = frozenset()
    revoked: frozenset[int] = frozenset()


class Ownership:
    """The notes of one source, over all the consumers that it goes through.

    An assigned partition is reported until it is placed, so that a caller who fails on the way finds it again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unplaced: set[int] = set()
        self._revoked: set[int] = set()

    def gain(self, partitions: Iterable[int]) -> None:
        """Partitions were given to us."""
        with self._lock:
            self._unplaced.update(partitions)

    def lose(self, partitions: Iterable[int]) -> None:
        """Partitions were taken from us, in good order or not."""
        with self._lock:
            lost = set(partitions)
            self._unplaced -= lost
            self._revoked |= lost

    def place(self, partition: int) -> None:
        """The partition's position is set."""
        with self._lock:
            self._unplaced.discard(partition)

    def take(self) -> Rebalance:
        """What is unplaced, and what went since the last call."""
        with self._lock:
            change = Rebalance(frozenset(self._unplaced), frozenset(self._revoked))
            self._revoked.clear()
            return change


class Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python ships no types
    """Notes what comes and goes, and holds each new partition still until its position is known.

    It runs on the loop that sends the heartbeats, while ``poll`` waits for it: no I/O here. The position 0 of a
    paused partition is never fetched from; it only keeps kafka-python from looking for one by itself, which would
    race with the caller's seek.
    """

    def __init__(self, consumer: KafkaConsumer, ownership: Ownership) -> None:
        self._consumer = consumer
        self._ownership = ownership

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Pause the new ones."""
        for place in assigned:
            self._consumer.pause(place)
            self._consumer.seek(place, 0)
        self._ownership.gain(place.partition for place in assigned)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Note them."""
        self._ownership.lose(place.partition for place in revoked)

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """As revoked: positions are in Postgres, so there is nothing that could still be committed."""
        self._ownership.lose(place.partition for place in lost)


class Fence:
    """Notices that another member of the group has taken our instance id; to be made anew with each consumer.

    kafka-python only stops sending heartbeats then: it goes on reading what is no longer ours, and says nothing.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        coordinator = consumer._coordinator  # noqa: SLF001 - nothing public tells
        send = coordinator._send_heartbeat_request  # noqa: SLF001 - as above
        self._error: FencedInstanceIdError | None = None

        async def send_noting() -> None:
            try:
                await send()
            except FencedInstanceIdError as error:
                self._error = error
                raise

        coordinator._send_heartbeat_request = send_noting  # noqa: SLF001 - as above

    def check(self) -> None:
        """Raise kafka-python's FencedInstanceIdError if we were fenced off."""
        if self._error is not None:
            raise self._error


class _Answer(Future):  # type: ignore[misc]  # kafka-python ships no types
    """Not done until someone waits for it."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self._answer = value

    def add_callback(self, *callback: object) -> Future:
        if not self.is_done:
            self.success(self._answer)
        return super().add_callback(*callback)


def keep_join(consumer: KafkaConsumer) -> None:
    """Let the next poll have the answer to its request to join that came between two polls. Not for use during one.

    kafka-python discards such an answer and asks again, and when the group's leader asks again, the whole group must
    start over. Members that always miss each other's polls would never settle. A leader that joins because partitions
    were added even forgets that it joins, as soon as it has shared them out: it would have no heartbeat from then on,
    and so lose its place in the group without noticing.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - nothing public tells
    if coordinator.rejoining:
        coordinator.request_rejoin()
    join = getattr(coordinator, "_join_task", None)
    if join is not None and join.succeeded():
        coordinator._join_task = _Answer(join.value)  # noqa: SLF001
