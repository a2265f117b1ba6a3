"""How a batch is booked: its dead letters first, then one transaction.

It is stored in halves if that takes too long, and one by one if the database refuses a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Generic, TypeVar

import structlog

from schemas.reject_reason import RejectReason
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.steps import Steps
from worker.rules.records import Record
from worker.rules.settlement import Advance, Settled, Settlement, by_record, merge
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.errors import StoreRejected, StoreTimeout

S = TypeVar("S", bound=Settlement)

log = structlog.get_logger(__name__)


class Booking(Generic[S]):
    """Books settlements of one kind, and waits while a transient fault lasts.

    ``write`` is the transaction, and ``dead`` makes the settlement of a record that is a dead letter.
    """

    def __init__(
        self,
        *,
        write: Callable[[Sequence[S], Sequence[Advance]], Settled],
        dead: Callable[[Record, RejectReason, str | None], S],
        dead_letters: DeadLetters,
        retry: RetryPolicy,
        metrics: Metrics,
    ) -> None:
        self._write = write
        self._dead = dead
        self._dead_letters = dead_letters
        self._retry = retry
        self._metrics = metrics

    def book(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        """Book a batch. Raises Stopped if a stop is asked for while a fault lasts."""
        self._send(settlements)
        return self._store_all(settlements, advances)

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        return self.book([self._dead(record, RejectReason.UNREADABLE, None) for record in records], [advance])

    def _send(self, settlements: Sequence[S]) -> None:
        # First the dead letters, then the ledger: a crash between them repeats a dead letter and loses none.
        self._retry.call(lambda: self._send_dead_letters(settlements), name="dead_letters")

    def _send_dead_letters(self, settlements: Sequence[S]) -> None:
        with self._metrics.stage(Stage.DEAD_LETTERS):
            self._dead_letters.send(settlements)

    def _store_all(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        try:
            return self._retry.call(lambda: self._store(settlements, advances), name="settle")
        except _TooSlow:
            records = len(by_record(settlements))
            log.warning("batch_too_slow_for_store", records=records)
            return self._store_parts(settlements, advances, (records + 1) // 2)
        except StoreRejected as error:
            records = len(by_record(settlements))
            if not records:
                raise
            if records == 1:
                return self._store_rejected(settlements[0].record, advances, error)
            # One row of the batch is more than the database can hold. Alone, each record shows which it was.
            log.warning("batch_rejected_by_store", records=records, error=str(error))
            return self._store_parts(settlements, advances, 1)

    def _store(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        with self._metrics.stage(Stage.STORE):
            try:
                return self._write(settlements, advances)
            except StoreTimeout as error:
                # One record alone is waited for: then it is the database that is slow.
                if len(by_record(settlements)) < 2:
                    raise
                raise _TooSlow from error

    def _store_parts(self, settlements: Sequence[S], advances: Sequence[Advance], size: int) -> Settled:
        """Store so many records at a time. What a record holds stays together: its offset is passed but once."""
        steps, done = Steps(advances), []
        held = by_record(settlements)
        records = [results[0].record for results in held]
        for start in range(0, len(held), size):
            end = start + size
            part = list(chain.from_iterable(held[start:end]))
            done.append(self._store_all(part, steps.through(records[start:end], records[end:])))
        return merge(done)

    def _store_rejected(self, record: Record, advances: Sequence[Advance], error: StoreRejected) -> Settled:
        rejected = self._dead(record, RejectReason.STORE_REJECTED, error.constraint or "")
        self._send([rejected])
        return self._retry.call(lambda: self._store([rejected], advances), name="settle")


class _TooSlow(Exception):  # noqa: N818 - reads as the fact it states
    """A batch takes longer to store than a statement may."""
