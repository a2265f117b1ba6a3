"""What happens to a batch of the label topic: read, dead-letter, store. Kafka's position is not its concern."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from schemas.label_reading import Reading, read_label_payload
from schemas.reject_reason import RejectReason
from schemas.review_label import ReviewLabel
from worker.ingest.booking import Booking
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.decode import left_out
from worker.rules.label_settlement import NO_LABEL, LabelSettlement
from worker.rules.records import Record
from worker.rules.settlement import Advance, Outcome, Settled
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.label_settlements import LabelSettlements
from worker.store.labels import Labels

log = structlog.get_logger(__name__)


class LabelIntake:
    """Settles batches of labels.

    A record with several labels of which one is wrong is a dead letter, and the others are stored, but for those of the
    same annotation: replayed, they are repeats.
    """

    def __init__(
        self,
        *,
        labels: Labels,
        settlements: LabelSettlements,
        dead_letters: DeadLetters,
        max_message_bytes: int,
        retry: RetryPolicy,
        metrics: Metrics,
    ) -> None:
        self._labels = labels
        self._max_message_bytes = max_message_bytes
        self._retry = retry
        self._metrics = metrics
        self._booking = Booking(
            write=settlements.settle, dead=_dead, dead_letters=dead_letters, retry=retry, metrics=metrics
        )

    def settle(self, records: Sequence[Record], advances: Sequence[Advance]) -> Settled:
        """Give every record its outcome and store all of them with the partitions' new offsets; there may be none.

        Waits while a transient fault lasts. Raises Stopped if a stop is asked for meanwhile; nothing is stored then.
        """
        if not records:
            return self._booking.book([], advances)
        with self._metrics.stage(Stage.DECODE):
            readings = [self._read(record) for record in records]
        labels = [label for reading in readings for label in reading.labels]
        unknown = self._retry.call(lambda: self._labels.unknown_sentences(labels), name="label_places")
        settlements = _settlements(records, readings, unknown)
        settled = self._booking.book(settlements, advances)
        self._metrics.unread_choices(sum(reading.passed_over for reading in readings))
        return settled

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        return self._booking.bury(records, advance)

    def _read(self, record: Record) -> Reading:
        if record.left_out_bytes:
            return Reading(faults=(left_out(record, self._max_message_bytes),))
        return read_label_payload(
            record.value,
            record.headers,
            max_bytes=self._max_message_bytes,
            received_at=datetime.now(UTC),
            has_key=record.key is not None,
        )


def _settlements(records: Sequence[Record], readings: Sequence[Reading], unknown: set[int]) -> list[LabelSettlement]:
    """``unknown`` are positions among the labels of all the readings."""
    settlements = []
    start = 0
    for record, reading in zip(records, readings, strict=True):
        known: list[ReviewLabel] = []
        lost: list[ReviewLabel] = []
        for bundle in reading.bundles:
            wrong = [label for position, label in enumerate(bundle, start) if position in unknown]
            start += len(bundle)
            known.extend(() if wrong else bundle)
            lost.extend(wrong)
        settlements.append(_settlement(record, reading, tuple(known), lost))
    return settlements


def _settlement(
    record: Record, reading: Reading, known: tuple[ReviewLabel, ...], lost: Sequence[ReviewLabel]
) -> LabelSettlement:
    if reading.faults:
        return _dead(record, reading.faults[0].reason, reading.faults[0].detail, known)
    if lost:
        detail = f"no sentence {lost[0].sentence_index} that was scored"
        return _dead(record, RejectReason.UNKNOWN_SENTENCE, detail, known)
    if not known:
        return LabelSettlement(record, Outcome.SKIPPED, reading.skip or NO_LABEL)
    return LabelSettlement(record, Outcome.LABELLED, labels=known)


def _dead(
    record: Record, reason: RejectReason, detail: str | None, labels: tuple[ReviewLabel, ...] = ()
) -> LabelSettlement:
    return LabelSettlement(record, Outcome.DEAD_LETTERED, reason, detail, labels=labels)
