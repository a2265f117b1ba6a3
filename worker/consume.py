"""The poll loop: reads the partitions it owns, hands batches to the engine, and keeps polling while one is scored."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import structlog

from worker.backoff import outlast
from worker.broker.errors import BrokerMisconfigured, RecordsUnreadable
from worker.broker.source import RecordSource
from worker.engine import Engine
from worker.errors import Stopped
from worker.ingest import Ingest
from worker.records import Record
from worker.settlement import Advance, Settled
from worker.store import Store

POLL_S = 0.5
# While a batch is scored the poll only keeps the membership alive, and the loop should notice its end soon.
BUSY_POLL_S = 0.05

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch that is being settled."""

    advances: tuple[Advance, ...]
    future: Future[Settled]


class Consumer:
    """Runs in the thread that calls ``run``; owns the source.

    The truth about positions is in Postgres. Each owned partition has an entry in ``_positions``: the next offset that
    Postgres holds, from which the next batch must go on. Records of a partition without an entry are not ours to read.
    """

    def __init__(
        self,
        *,
        source: RecordSource,
        store: Store,
        ingest: Ingest,
        engine: Engine[Settled],
        topic: str,
        owner: str,
        batch_messages: int,
        stop: threading.Event,
        on_settled: Callable[[Settled], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._store = store
        self._ingest = ingest
        self._engine = engine
        self._topic = topic
        self._owner = owner
        self._batch_messages = batch_messages
        self._stop = stop
        self._on_settled = on_settled
        self._positions: dict[int, int] = {}
        self._unplaced: set[int] = set()
        self._flight: Flight | None = None

    def run(self) -> None:
        """Consume until a stop is asked for; the batch at hand is finished first."""
        while not (self._stop.is_set() and self._flight is None):
            if self._engine.fault is not None:
                raise RuntimeError("the engine thread ended") from self._engine.fault
            try:
                self._step_or_skip()
            except Stopped:
                # The broker is gone and we were told to stop: what is in flight need not be committed to Kafka.
                break

    def _step_or_skip(self) -> None:
        try:
            outlast(self._step, name="poll", stop=self._stop)
        except RecordsUnreadable as gap:
            self._skip(gap)

    def _step(self) -> None:
        records = self._source.poll(BUSY_POLL_S if self._flight else POLL_S, self._batch_messages)
        try:
            self._take_rebalance()
            self._land()
            batch = [record for record in records if self._is_next(record)]
            if batch and self._flight is None and not self._stop.is_set():
                self._launch(batch)
                return
        except BaseException:
            # The source has moved past these records; they must be read again, or they would be lost.
            self._rewind(records)
            raise
        self._rewind(batch)

    def _is_next(self, record: Record) -> bool:
        position = self._positions.get(record.partition)
        return position is not None and record.offset >= position

    def _take_rebalance(self) -> None:
        change = self._source.take_rebalance()
        for partition in change.revoked:
            self._positions.pop(partition, None)
        self._unplaced = (self._unplaced - change.revoked) | change.assigned
        if change.assigned or change.revoked:
            log.info("rebalanced", assigned=sorted(change.assigned), revoked=sorted(change.revoked))
        for partition in sorted(self._unplaced):
            self._place(partition)

    def _place(self, partition: int) -> None:
        """Go to where Postgres says that the partition was left; a partition never seen begins at its beginning."""
        self._unplaced.add(partition)
        beginning = self._source.beginning_offset(partition)
        position = self._store.start_position(self._topic, partition, beginning)
        self._require_known(partition, position)
        self._positions[partition] = position
        self._source.seek(partition, position)
        self._unplaced.discard(partition)
        if self._flight is None:
            self._source.resume([partition])

    def _require_known(self, partition: int, position: int) -> None:
        """Refuse to wait for ever at an offset that the partition has not reached."""
        end = self._source.broker_end_offset(partition)
        if position > end:
            message = (
                f"{self._topic}[{partition}] ends at {end}, but the database stands at {position}: the topic was "
                "created anew or the database belongs to another cluster; set GASP_TOPIC or GASP_DATABASE_URL right"
            )
            raise BrokerMisconfigured(message)

    def _launch(self, batch: Sequence[Record]) -> None:
        advances = tuple(self._advances(batch))
        self._source.pause(self._source.assignment())
        future = self._engine.submit(lambda: self._ingest.settle(batch, advances))
        self._flight = Flight(advances, future)

    def _advances(self, batch: Sequence[Record]) -> list[Advance]:
        last: dict[int, int] = defaultdict(int)
        for record in batch:
            last[record.partition] = max(last[record.partition], record.offset)
        return [
            Advance(
                topic=self._topic,
                partition=partition,
                expected=self._positions[partition],
                next_offset=offset + 1,
                end_offset=self._source.end_offset(partition),
                generation=self._source.generation(),
                owner=self._owner,
            )
            for partition, offset in sorted(last.items())
        ]

    def _land(self) -> None:
        """Take the result of the batch in flight, if it is done, and let the partitions run again."""
        flight = self._flight
        if flight is None or not flight.future.done():
            return
        self._flight = None
        try:
            settled = flight.future.result()
        except Stopped:
            log.info("batch_abandoned", partitions=[advance.partition for advance in flight.advances])
            return
        fenced = {partition for _, partition in settled.fenced}
        done = [advance for advance in flight.advances if advance.partition not in fenced]
        for advance in done:
            if self._positions.get(advance.partition) == advance.expected:
                self._positions[advance.partition] = advance.next_offset
        self._source.commit({advance.partition: advance.next_offset for advance in done})
        log.info("settled", **{f"{outcome}:{reason or '-'}": n for (outcome, reason), n in settled.counts.items()})
        self._on_settled(settled)
        if fenced:
            # Another worker moved these on, or did so before they came back to us: ask Postgres again.
            log.warning("fenced", partitions=sorted(fenced))
            self._unplaced |= fenced & self._positions.keys()
        self._source.resume(self._positions.keys() - self._unplaced)

    def _skip(self, gap: RecordsUnreadable) -> None:
        """Book a stretch that no client of ours can decode as dead letters, once everything before it is settled.

        The source has dropped its partitions and joins again; until Postgres stands right before the gap, the records
        in front of it are read and settled first, and the next poll brings us back here.
        """
        positions = outlast(lambda: self._store.positions(gap.topic), name="positions", stop=self._stop)
        if positions.get(gap.partition) != gap.offset:
            log.info("unreadable_ahead", partition=gap.partition, offset=gap.offset)
            return
        advance = Advance(gap.topic, gap.partition, gap.offset, gap.next_offset, owner=self._owner)
        self._ingest.bury(
            [Record(gap.topic, gap.partition, offset, None, None) for offset in range(gap.offset, gap.next_offset)],
            advance,
        )
        log.warning("unreadable_records", partition=gap.partition, offset=gap.offset, next_offset=gap.next_offset)

    def _rewind(self, records: Sequence[Record]) -> None:
        """Put the partitions of records that were read but not launched back to their positions."""
        for partition in {record.partition for record in records} & self._positions.keys():
            self._source.seek(partition, self._positions[partition])
