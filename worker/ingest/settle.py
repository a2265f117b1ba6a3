"""What happens to a batch of records: decode, score, judge, choose for review, dead-letter, store.

Kafka's position is not its concern.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import structlog

from gasp_core.detectors.detector import AnswerEvidence, Detector
from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from schemas.decoding import Decoded, Rejected
from schemas.interaction import Interaction
from schemas.reject_reason import RejectReason
from worker.ingest.booking import Booking
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.decode import decode
from worker.ingest.scoring import Scoring, Unscorable
from worker.rules.chooser import Chooser
from worker.rules.records import Record
from worker.rules.settlement import Advance, Outcome, Settled, Settlement
from worker.rules.verdict import Threshold, judge, threshold_for
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.interactions import Interactions
from worker.store.sampling import Sampling
from worker.store.settlements import Settlements
from worker.store.thresholds import Thresholds

DUPLICATE = "duplicate"

# The operating system's, so that no message can choose whether people read it.
_RANDOM = random.SystemRandom()

log = structlog.get_logger(__name__)

Key = tuple[str, str, str]


class Ingest:
    """Settles batches under one scorer and detector.

    Review tasks are sent on the ``channels``; ``uniform`` draws from [0, 1) which answers become one.
    """

    def __init__(
        self,
        *,
        settlements: Settlements,
        interactions: Interactions,
        thresholds: Thresholds,
        sampling: Sampling,
        scoring: Scoring,
        scorer_id: int,
        detector: Detector,
        dead_letters: DeadLetters,
        max_message_bytes: int,
        default_app: str,
        retry: RetryPolicy,
        metrics: Metrics,
        channels: Sequence[str] = (),
        uniform: Callable[[], float] = _RANDOM.random,
    ) -> None:
        self._interactions = interactions
        self._in_force = thresholds
        self._sampling = sampling
        self._scoring = scoring
        self._scorer_id = scorer_id
        self._detector = detector
        self._max_message_bytes = max_message_bytes
        self._default_app = default_app
        self._retry = retry
        self._metrics = metrics
        self._channels = tuple(channels)
        self._uniform = uniform
        self._booking = Booking(
            write=lambda batch, advances: settlements.settle(scorer_id, batch, advances),
            dead=_dead,
            dead_letters=dead_letters,
            retry=retry,
            metrics=metrics,
        )

    def settle(self, records: Sequence[Record], advances: Sequence[Advance]) -> Settled:
        """Give every record its outcome and store all of them with the partitions' new offsets; there may be none.

        Waits while a transient fault lasts. Raises Stopped if a stop is asked for meanwhile, and ScorerBroken;
        nothing is stored then.
        """
        if not records:
            return self._booking.book([], advances)
        with self._metrics.stage(Stage.DECODE):
            decoded = [self._decode(record) for record in records]
        groundings = self._groundings([item.interaction for item in decoded if isinstance(item, Decoded)])
        thresholds = self._retry.call(self._thresholds, name="thresholds")
        chooser = self._retry.call(lambda: self._chooser(groundings), name="allowances")
        with self._metrics.stage(Stage.JUDGE):
            settlements = [
                self._settlement(record, item, groundings, thresholds, chooser)
                for record, item in zip(records, decoded, strict=True)
            ]
        return self._booking.book(settlements, advances)

    def bury(self, records: Sequence[Record], advance: Advance) -> Settled:
        """Dead-letter records whose bytes cannot be had, by reference."""
        return self._booking.bury(records, advance)

    def _decode(self, record: Record) -> Decoded | Rejected:
        return decode(
            record,
            max_message_bytes=self._max_message_bytes,
            default_app=self._default_app,
            received_at=datetime.now(UTC),
        )

    def _groundings(self, interactions: Sequence[Interaction]) -> dict[Key, AnswerGrounding | Unscorable]:
        """Score what this scorer has not judged yet, each content once."""
        logged = {key_of(interaction): interaction for interaction in interactions}
        known = self._retry.call(lambda: self._known(list(logged)), name="known")
        fresh = {key: interaction for key, interaction in logged.items() if key not in known}
        exchanges = [exchange_of(interaction) for interaction in fresh.values()]
        found = self._retry.call(lambda: self._score(exchanges), name="score")
        return dict(zip(fresh, found, strict=True))

    def _known(self, keys: Sequence[Key]) -> set[Key]:
        with self._metrics.stage(Stage.KNOWN):
            return self._interactions.known(self._scorer_id, keys)

    def _score(self, exchanges: Sequence[Exchange]) -> list[AnswerGrounding | Unscorable]:
        with self._metrics.stage(Stage.SCORE):
            found = self._scoring.score(exchanges)
        self._metrics.tokens_scored(sum(_tokens(one) for one in found if isinstance(one, AnswerGrounding)))
        return found

    def _thresholds(self) -> dict[str | None, Threshold]:
        in_force = self._in_force.in_force(self._scorer_id)
        self._metrics.thresholds(in_force)
        return in_force

    def _settlement(
        self,
        record: Record,
        item: Decoded | Rejected,
        groundings: dict[Key, AnswerGrounding | Unscorable],
        thresholds: dict[str | None, Threshold],
        chooser: Chooser,
    ) -> Settlement:
        if isinstance(item, Rejected):
            return Settlement(record, Outcome.DEAD_LETTERED, item.reason, item.detail)
        # Popped: the first record of a content carries its scores, a later one in the same batch is a duplicate.
        grounding = groundings.pop(key_of(item.interaction), None)
        if grounding is None:
            return Settlement(record, Outcome.SKIPPED, DUPLICATE, decoded=item)
        if isinstance(grounding, Unscorable):
            return Settlement(record, Outcome.DEAD_LETTERED, RejectReason.SCORING_FAILED, grounding.error)
        scores = self._detector.scores(AnswerEvidence.of(exchange_of(item.interaction), grounding))
        verdict = judge(scores, threshold_for(item.interaction.app, thresholds))
        if grounding.skip_reason is not None:
            return Settlement(
                record, Outcome.SKIPPED, grounding.skip_reason, decoded=item, grounding=grounding, verdict=verdict
            )
        verdict = chooser.chosen(item.interaction.app, verdict)
        return Settlement(
            record, Outcome.SCORED, decoded=item, grounding=grounding, verdict=verdict, channels=self._channels
        )

    def _chooser(self, groundings: Mapping[Key, AnswerGrounding | Unscorable]) -> Chooser:
        apps = {app for (app, *_), found in groundings.items() if isinstance(found, AnswerGrounding)}
        return Chooser(self._sampling.allowances(self._scorer_id, sorted(apps)), self._uniform)


def _tokens(grounding: AnswerGrounding) -> int:
    read = grounding.truncation
    return read.context_tokens + read.answer_tokens - read.context_tokens_cut - read.answer_tokens_cut


def _dead(record: Record, reason: RejectReason, detail: str | None) -> Settlement:
    return Settlement(record, Outcome.DEAD_LETTERED, reason, detail)


def key_of(interaction: Interaction) -> Key:
    """What makes an interaction the same one: app, id and content."""
    return (interaction.app, interaction.interaction_id, interaction.content_hash)


def exchange_of(interaction: Interaction) -> Exchange:
    """The part of an interaction that is scored."""
    passages = tuple(Passage(passage.id, passage.text) for passage in interaction.passages)
    return Exchange(interaction.question, passages, interaction.answer)
