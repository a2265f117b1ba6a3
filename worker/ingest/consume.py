"""The poll loop: reads the partitions it holds, hands batches to the engine, and keeps polling while one is settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol

import structlog

from worker.broker.errors import RecordsUnreadable
from worker.broker.source import RecordSource
from worker.errors import Stopped
from worker.ingest.batch_limit import BatchLimit
from worker.ingest.placement import Placement
from worker.rules.records import Record
from worker.rules.settlement import Advance, Settled
from worker.runtime.engine import Engine
from worker.runtime.metrics import Stage
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry

POLL_S = 0.5
# While a batch is settled the poll only keeps the membership alive, and its end is waited for between polls.
BUSY_POLL_S = 0.01
BUSY_WAIT_S = 0.05
REPORT_EVERY_S = 5.0
# Dead letters without their bytes that are sent and stored between two polls.
BURY_RECORDS = 500

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch that is being settled."""

    advances: tuple[Advance, ...]
    future: Future[Settled]
    size_bytes: int


class Settling(Protocol):
    """What becomes of the records of a topic."""

    def settle(self, records: Sequence[Record], advances: Sequence[Advance]) -> Settled:
        """Give every record its outcome and store all of them with the partitions' new offsets.

        There may be none: then the offsets that are passed hold no record.
        """

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""


class Consumer:
    """Runs in the thread that calls ``run``; owns the source. ``part`` is its name among what has to be ready.

    ``on_ends`` is told now and then where the partitions end that are held.

    A batch has at most ``batch_messages`` records, fewer after one that ended its worker, and, unless it is a single
    one, ``batch_bytes``. After a stop the batch in flight gets the stop's grace and is then abandoned: what is not
    settled of it is read again by whoever has its partitions next.
    """

    def __init__(
        self,
        *,
        source: RecordSource,
        placement: Placement,
        ingest: Settling,
        engine: Engine[Settled],
        topic: str,
        batch_messages: int,
        batch_bytes: int,
        stop: Stop,
        retry: RetryPolicy,
        telemetry: Telemetry,
        on_settled: Callable[[Settled], None] = lambda _: None,
        on_ends: Callable[[Mapping[int, int]], None] = lambda _: None,
        part: str = "kafka",
    ) -> None:
        self._part = part
        self._source = source
        self._placement = placement
        self._ingest = ingest
        self._engine = engine
        self._topic = topic
        self._limit = BatchLimit(batch_messages)
        self._batch_bytes = batch_bytes
        self._stop = stop
        self._telemetry = telemetry
        self._on_settled = on_settled
        self._on_ends = on_ends
        self._retry = retry
        self._unreadable: dict[int, RecordsUnreadable] = {}
        self._flight: Flight | None = None
        self._reported_at = 0.0

    def run(self) -> None:
        """Consume until a stop is asked for; the batch at hand is finished first, unless it takes too long."""
        while not (self._stop.is_set() and self._flight is None):
            self._engine.check()
            if self._stop.remaining_s() <= 0:
                self._abandon()
                break
            try:
                self._step_or_note()
            except Stopped:
                # Something is away and we were told to stop: what is in flight need not be committed to Kafka.
                break

    def _step_or_note(self) -> None:
        try:
            self._retry.call(self._step, name="poll")
        except RecordsUnreadable as unreadable:
            # The source has dropped its partitions. Once this one is ours again, the stretch is settled in its place.
            log.warning(
                "unreadable_ahead",
                partition=unreadable.partition,
                offset=unreadable.offset,
                next_offset=unreadable.next_offset,
            )
            self._unreadable[unreadable.partition] = unreadable

    def _step(self) -> None:
        if self._flight is not None:
            wait([self._flight.future], BUSY_WAIT_S)
        self._land()
        with self._telemetry.metrics.stage(Stage.POLL):
            records = self._source.poll(BUSY_POLL_S if self._flight else POLL_S, self._limit.messages)
        batch: list[Record] = []
        try:
            for partition in self._placement.take_rebalance():
                self._go_on(partition)
            if self._flight is None and not self._stop.is_set():
                batch = self._first_of(records)
                left = {record.partition for record in records[len(batch) :]}
                self._launch([record for record in batch if self._placement.is_next(record)], left)
        except BaseException:
            # The source has moved past these records; they must be read again, or they would be lost.
            self._rewind(records)
            raise
        self._rewind(records[len(batch) :])
        self._report()

    def _go_on(self, partition: int) -> None:
        """Read a partition that was claimed just now from where it stands."""
        attempts = self._placement.held[partition].attempts
        if attempts:
            self._limit.after(attempts)
            log.warning("batch_reduced", partition=partition, attempts=attempts, messages=self._limit.messages)
        self._pass_unreadable(partition)
        next_offset = self._placement.held[partition].next_offset
        self._source.seek(partition, next_offset)
        self._placement.placed(partition)
        # The last owner may not have come to it, and what is at its end has no next batch.
        self._source.commit({partition: next_offset})
        if self._flight is None:
            self._source.resume([partition])

    def _pass_unreadable(self, partition: int) -> None:
        """Book a stretch that no client of ours can decode as dead letters, if the partition stands right before it.

        Otherwise the records in front of it are settled first, and the poll that meets it brings us back here. So it
        does if a stop, another owner or a fault comes in between: what is booked is booked.
        """
        unreadable = self._unreadable.pop(partition, None)
        held = self._placement.held[partition]
        if unreadable is None or not unreadable.position <= held.next_offset < unreadable.next_offset:
            return
        self._source.pause(self._source.assignment())
        first = max(unreadable.offset, held.next_offset)
        for begin in range(first, unreadable.next_offset, BURY_RECORDS):
            if self._stop.is_set() or not self._bury(unreadable, begin):
                return
        log.warning("unreadable_records", partition=partition, offset=first, next_offset=unreadable.next_offset)
        if self._flight is None:
            self._source.resume(self._placement.running)

    def _bury(self, unreadable: RecordsUnreadable, begin: int) -> bool:
        """Book a portion of the stretch and go on being a member of the group; whether the partition is still ours."""
        end = min(begin + BURY_RECORDS, unreadable.next_offset)
        records = [Record(unreadable.topic, unreadable.partition, offset, None, None) for offset in range(begin, end)]
        advance = self._placement.advance(unreadable.partition, end)
        self._retry.beat()
        settled = self._ingest.bury(records, advance)
        self._book(settled, [advance])
        self._retry.beat()
        self._source.poll(BUSY_POLL_S)
        return not settled.fenced

    # --- batches ---

    def _first_of(self, records: Sequence[Record]) -> list[Record]:
        """As many as fit into a batch."""
        batch: list[Record] = []
        size_bytes = 0
        for record in records:
            size_bytes += record.memory_bytes
            if batch and (size_bytes > self._batch_bytes or len(batch) >= self._limit.messages):
                break
            batch.append(record)
        return batch

    def _launch(self, batch: Sequence[Record], left: Set[int]) -> None:
        """Settle the batch; ``left`` are the partitions of which more was read than is in it."""
        ends = self._ends(batch, left)
        if not ends:
            return
        advances = tuple(self._placement.advance(partition, end) for partition, end in sorted(ends.items()))
        self._source.pause(self._source.assignment())
        size_bytes = sum(record.memory_bytes for record in batch)
        self._flight = Flight(advances, self._engine.submit(lambda: self._ingest.settle(batch, advances)), size_bytes)
        if batch:
            self._telemetry.metrics.batch_launched(len(batch), size_bytes)
        for record in reversed(batch):
            self._telemetry.metrics.oldest_unscored(self._topic, record.partition, record.broker_time)

    def _ends(self, batch: Sequence[Record], left: Set[int]) -> dict[int, int]:
        """Where each partition that moves stands afterwards: behind its records, and behind offsets that hold none."""
        ends: dict[int, int] = {}
        for record in batch:
            ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
        for partition in self._placement.running - left:
            ends[partition] = max(ends.get(partition, 0), self._source.position(partition) or 0)
        return {partition: end for partition, end in ends.items() if end > self._placement.held[partition].next_offset}

    def _land(self) -> None:
        """Take the result of the batch in flight, if it is done, and let the partitions run again."""
        flight = self._flight
        if flight is None or not flight.future.done():
            return
        self._flight = None
        self._telemetry.metrics.batch_landed(flight.size_bytes)
        try:
            settled = flight.future.result()
        except Stopped:
            self._placement.take_back_attempt(flight.advances)
            log.info("batch_abandoned", partitions=[advance.partition for advance in flight.advances])
            return
        except BaseException:
            self._placement.take_back_attempt(flight.advances)
            raise
        self._book(settled, flight.advances)
        self._limit.went_well()
        self._source.resume(self._placement.running)

    def _book(self, settled: Settled, advances: Sequence[Advance]) -> None:
        """Follow what a transaction did."""
        fenced = {partition for _, partition in settled.fenced}
        done = [advance for advance in advances if advance.partition not in fenced]
        for advance in done:
            self._placement.taken(advance)
        with self._telemetry.metrics.stage(Stage.COMMIT):
            self._source.commit({advance.partition: advance.next_offset for advance in done})
        if settled.counts:
            log.info("settled", **{f"{outcome}:{reason or '-'}": n for (outcome, reason), n in settled.counts.items()})
        if fenced:
            log.warning("fenced", partitions=sorted(fenced))
            self._placement.fenced(fenced)
        self._telemetry.metrics.settled(settled)
        self._on_settled(settled)

    def _abandon(self) -> None:
        if self._flight is not None:
            log.warning("batch_abandoned", partitions=[advance.partition for advance in self._flight.advances])
            self._telemetry.metrics.batch_abandoned()
            self._placement.take_back_attempt(self._flight.advances)

    def _rewind(self, records: Sequence[Record]) -> None:
        """Read records that were read but not launched once more: from behind the batch in flight."""
        flying = {advance.partition: advance.next_offset for advance in self._flight.advances} if self._flight else {}
        for partition in {record.partition for record in records} & self._placement.held.keys():
            self._source.seek(partition, flying.get(partition, self._placement.held[partition].next_offset))

    def _report(self) -> None:
        """Say how far behind each partition is, and whether we belong to the group."""
        if time.monotonic() < self._reported_at + REPORT_EVERY_S:
            return
        self._reported_at = time.monotonic()
        self._telemetry.readiness.set(self._part, self._source.problem())
        # Asked for, since a partition that waits behind others has not been fetched for long.
        ends = self._source.end_offsets()
        self._on_ends({partition: end for partition, end in ends.items() if partition in self._placement.held})
        for partition in self._placement.held.keys() & ends.keys():
            lag = max(0, ends[partition] - self._placement.held[partition].next_offset)
            self._telemetry.metrics.lag(self._topic, partition, lag)
            if lag == 0:
                self._telemetry.metrics.oldest_unscored(self._topic, partition, None)
