"""What happens to a batch of records: decode, score, judge, dead-letter, store. Kafka's position is not its concern."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.scorer import GroundingScorer
from schemas.dead_letter import RejectReason
from schemas.decoding import Decoded, Rejected
from schemas.interaction import Interaction
from worker.backoff import outlast
from worker.dead_letters import DeadLetters
from worker.decode import decode
from worker.judge import Threshold, judge, threshold_for
from worker.records import Record
from worker.settlement import Advance, Outcome, Settled, Settlement
from worker.store import Store
from worker.store.errors import StoreRejected

DUPLICATE = "duplicate"

log = structlog.get_logger(__name__)

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Unscorable:
    """The scorer failed on this exchange alone. ``error`` is the name of the exception's type."""

    error: str


class Ingest:
    """Settles batches under one scorer."""

    def __init__(
        self,
        *,
        store: Store,
        scorer: GroundingScorer,
        scorer_id: int,
        dead_letters: DeadLetters,
        max_message_bytes: int,
        default_app: str,
        stop: threading.Event,
    ) -> None:
        self._store = store
        self._scorer = scorer
        self._scorer_id = scorer_id
        self._dead_letters = dead_letters
        self._max_message_bytes = max_message_bytes
        self._default_app = default_app
        self._stop = stop

    def settle(self, records: Sequence[Record], advances: Sequence[Advance]) -> Settled:
        """Give every record its outcome and store all of them with the partitions' new offsets.

        Transient faults are waited out. Raises Stopped if a stop is asked for meanwhile; nothing is stored then.
        """
        decoded = [self._decode(record) for record in records]
        interactions = [item.interaction for item in decoded if isinstance(item, Decoded)]
        known = outlast(lambda: self._known(interactions), name="known", stop=self._stop)
        fresh = {key_of(one): one for one in interactions if key_of(one) not in known}
        groundings = dict(zip(fresh, self._score(list(fresh.values())), strict=True))
        thresholds = outlast(lambda: self._store.active_thresholds(self._scorer_id), name="thresholds", stop=self._stop)
        settlements = [
            _settlement(record, item, groundings, thresholds) for record, item in zip(records, decoded, strict=True)
        ]
        try:
            return self._store_all(settlements, advances)
        except StoreRejected as error:
            # One row of the batch is more than the database can hold. Alone, each record shows which it was.
            log.warning("batch_rejected_by_store", records=len(records), error=str(error))
            return self._store_each(settlements, advances)

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        unreadable = [Settlement(record, Outcome.DEAD_LETTERED, RejectReason.UNREADABLE) for record in records]
        return self._store_all(unreadable, [advance])

    def _store_all(self, settlements: Sequence[Settlement], advances: Sequence[Advance]) -> Settled:
        # First the dead letters, then the ledger: a crash between them repeats a dead letter and loses none.
        outlast(lambda: self._dead_letters.send(settlements), name="dead_letters", stop=self._stop)
        return outlast(
            lambda: self._store.settle(self._scorer_id, settlements, advances), name="settle", stop=self._stop
        )

    def _store_each(self, settlements: Sequence[Settlement], advances: Sequence[Advance]) -> Settled:
        positions = {advance.partition: advance for advance in advances}
        results = []
        for settlement in settlements:
            place = positions[settlement.record.partition]
            step = replace(place, next_offset=settlement.record.offset + 1)
            try:
                results.append(self._store_all([settlement], [step]))
            except StoreRejected as error:
                results.append(self._store_all([_rejected(settlement, error)], [step]))
            positions[step.partition] = replace(step, expected=step.next_offset)
        return merge(results)

    def _decode(self, record: Record) -> Decoded | Rejected:
        return decode(
            record,
            max_message_bytes=self._max_message_bytes,
            default_app=self._default_app,
            received_at=datetime.now(UTC),
        )

    def _known(self, interactions: Sequence[Interaction]) -> set[Key]:
        return self._store.known(self._scorer_id, [key_of(interaction) for interaction in interactions])

    def _score(self, interactions: Sequence[Interaction]) -> list[AnswerGrounding | Unscorable]:
        exchanges = [exchange_of(interaction) for interaction in interactions]
        if not exchanges:
            return []
        try:
            return list(self._scorer.score(exchanges))
        except Exception as error:  # noqa: BLE001 - whatever an exchange does to the model must not stop a partition
            log.warning("batch_scoring_failed", error=type(error).__name__, exchanges=len(exchanges))
            return [self._score_alone(exchange) for exchange in exchanges]

    def _score_alone(self, exchange: Exchange) -> AnswerGrounding | Unscorable:
        try:
            return self._scorer.score([exchange])[0]
        except Exception as error:  # noqa: BLE001 - as above; the outcome is a dead letter that names the error
            return Unscorable(type(error).__name__)


def _rejected(settlement: Settlement, error: StoreRejected) -> Settlement:
    return Settlement(settlement.record, Outcome.DEAD_LETTERED, RejectReason.STORE_REJECTED, error.constraint or "")


def merge(results: Sequence[Settled]) -> Settled:
    """Add up what several transactions did."""
    counts: Counter[tuple[Outcome, str | None]] = Counter()
    for result in results:
        counts.update(result.counts)
    return Settled(dict(counts), tuple(sorted({place for result in results for place in result.fenced})))


def key_of(interaction: Interaction) -> Key:
    """What makes an interaction the same one: app, id and content."""
    return (interaction.app, interaction.interaction_id, interaction.content_hash)


def exchange_of(interaction: Interaction) -> Exchange:
    """The part of an interaction that is scored."""
    passages = tuple(Passage(passage.id, passage.text) for passage in interaction.passages)
    return Exchange(interaction.question, passages, interaction.answer)


def _settlement(
    record: Record,
    item: Decoded | Rejected,
    groundings: dict[Key, AnswerGrounding | Unscorable],
    thresholds: dict[str | None, Threshold],
) -> Settlement:
    if isinstance(item, Rejected):
        return Settlement(record, Outcome.DEAD_LETTERED, item.reason, item.detail)
    # Popped: the first record of a content carries its scores, a later one in the same batch is a duplicate.
    grounding = groundings.pop(key_of(item.interaction), None)
    if grounding is None:
        return Settlement(record, Outcome.SKIPPED, DUPLICATE, decoded=item)
    if isinstance(grounding, Unscorable):
        return Settlement(record, Outcome.DEAD_LETTERED, RejectReason.SCORING_FAILED, grounding.error)
    verdict = judge(grounding, threshold_for(item.interaction.app, thresholds))
    if grounding.skip_reason is not None:
        return Settlement(
            record, Outcome.SKIPPED, grounding.skip_reason, decoded=item, grounding=grounding, verdict=verdict
        )
    return Settlement(record, Outcome.SCORED, decoded=item, grounding=grounding, verdict=verdict)
