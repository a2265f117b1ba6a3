"""How a batch is booked: its dead letters first, then one transaction; one by one if the database refuses a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import structlog

from schemas.reject_reason import RejectReason
from worker.ingest.dead_letters import DeadLetters
from worker.rules.records import Record
from worker.rules.settlement import Advance, Settled, Settlement, merge
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.errors import StoreRejected

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
        """Book a batch. Raises Stopped if a stop is asked for while a fault lasts; nothing is stored then."""
        try:
            return self._book_all(settlements, advances)
        except StoreRejected as error:
            # One row of the batch is more than the database can hold. Alone, each record shows which it was.
            log.warning("batch_rejected_by_store", records=len(settlements), error=str(error))
            return self._book_each(settlements, advances)

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        return self._book_all([self._dead(record, RejectReason.UNREADABLE, None) for record in records], [advance])

    def _book_all(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        # First the dead letters, then the ledger: a crash between them repeats a dead letter and loses none.
        self._retry.call(lambda: self._send_dead_letters(settlements), name="dead_letters")
        return self._retry.call(lambda: self._store(settlements, advances), name="settle")

    def _send_dead_letters(self, settlements: Sequence[S]) -> None:
        with self._metrics.stage(Stage.DEAD_LETTERS):
            self._dead_letters.send(settlements)

    def _store(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        with self._metrics.stage(Stage.STORE):
            return self._write(settlements, advances)

    def _book_each(self, settlements: Sequence[S], advances: Sequence[Advance]) -> Settled:
        positions = {advance.partition: advance for advance in advances}
        results = []
        for settlement in settlements:
            record = settlement.record
            step = replace(positions[record.partition], next_offset=record.offset + 1)
            try:
                results.append(self._book_all([settlement], [step]))
            except StoreRejected as error:
                rejected = self._dead(record, RejectReason.STORE_REJECTED, error.constraint or "")
                results.append(self._book_all([rejected], [step]))
            positions[step.partition] = replace(step, expected=step.next_offset)
        return merge(results)
