"""What happens to a batch of records: decode, judge, dead-letter, store.

Kafka's position is not its concern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from schemas.decoding import Reading, Rejected
from schemas.encodings.schema import NO_SCHEMAS, Schemas
from schemas.formats import AUTO
from schemas.reject_reason import RejectReason
from worker.ingest.booking import Booking
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.decode import decode
from worker.ingest.judging import MAX_ATTEMPTS, Found, Judging
from worker.ingest.steps import Steps
from worker.rules.pieces import TracePolicy, kept_pieces
from worker.rules.records import Record
from worker.rules.settlement import Advance, Outcome, Settled, Settlement, merge
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.settlements import Settlements


class Ingest:
    """Settles batches. What is collected of traces is due as ``traces`` says."""

    def __init__(
        self,
        *,
        judging: Judging,
        settlements: Settlements,
        dead_letters: DeadLetters,
        max_message_bytes: int,
        default_app: str,
        format_name: str = AUTO,
        schemas: Schemas = NO_SCHEMAS,
        retry: RetryPolicy,
        metrics: Metrics,
        traces: TracePolicy = TracePolicy(),  # noqa: B008 - frozen
    ) -> None:
        self._judging = judging
        self._settlements = settlements
        self._max_message_bytes = max_message_bytes
        self._default_app = default_app
        self._format_name = format_name
        self._schemas = schemas
        self._retry = retry
        self._metrics = metrics
        self._booking = Booking(
            write=lambda batch, advances: settlements.settle(judging.scorer_id, batch, advances, traces),
            dead=_dead,
            dead_letters=dead_letters,
            retry=retry,
            metrics=metrics,
        )

    def settle(self, records: Sequence[Record], advances: Sequence[Advance]) -> Settled:
        """Give every record its outcome and store all of them with the partitions' new offsets; there may be none.

        On a slow machine that is done in parts, so that what is scored is stored before long. Waits while a transient
        fault lasts. Raises Stopped if a stop is asked for meanwhile, and ScorerBroken; what was done before stays.
        """
        if not records:
            return self._booking.book([], advances)
        attempt = self._retry.call(lambda: self._settlements.begin(advances), name="begin")
        with self._metrics.stage(Stage.DECODE):
            items = [self._found(record) for record in records]
        steps, fenced = Steps(advances), set[int]()
        done: list[Settled] = []
        while items := [item for item in items if item.record.partition not in fenced]:
            # What ended the attempts before this one is what comes first, and must take nothing along.
            is_suspect = attempt > 1 and not done
            end = self._judging.pace.fitting([item.characters for item in items], alone=is_suspect)
            part, items = items[:end], items[end:]
            steps_of_part = steps.through([item.record for item in part], [item.record for item in items])
            gives_up = is_suspect and attempt > MAX_ATTEMPTS
            done.append(self._settle_part(part, steps_of_part, gives_up=gives_up))
            fenced |= {partition for _, partition in done[-1].fenced}
        return merge(done)

    def _settle_part(self, items: Sequence[Found], advances: Sequence[Advance], *, gives_up: bool) -> Settled:
        settlements = self._judging.settlements(items, gives_up=gives_up)
        return self._booking.book(list(_with_pieces(items, settlements)), advances)

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        return self._booking.bury(records, advance)

    def _found(self, record: Record) -> Found:
        # A schema may have to be looked up.
        reading = self._retry.call(lambda: self._decode(record), name="decode")
        pieces, unusable = kept_pieces(reading.pieces)
        refused = (Rejected(one.reason, one.detail) for one in unusable)
        return Found(record, (*reading.results, *refused), tuple(pieces))

    def _decode(self, record: Record) -> Reading:
        return decode(
            record,
            max_message_bytes=self._max_message_bytes,
            default_app=self._default_app,
            received_at=datetime.now(UTC),
            format_name=self._format_name,
            schemas=self._schemas,
        )


def _with_pieces(found: Sequence[Found], settlements: Sequence[Settlement]) -> Iterator[Settlement]:
    """The settlements of what was found, where that has pieces followed by one for all of these."""
    left = iter(settlements)
    for one in found:
        yield from islice(left, len(one.results))
        if one.pieces:
            yield Settlement(one.record, Outcome.COLLECTED, item=len(one.results) + 1, pieces=one.pieces)


def _dead(record: Record, reason: RejectReason, detail: str | None) -> Settlement:
    return Settlement(record, Outcome.DEAD_LETTERED, reason, detail)
