"""What becomes of exchanges, wherever they were found: known?, score, judge, choose for review."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from gasp_core.detectors.detector import Detector
from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.text.marks import without_marks
from schemas.decoding import Decoded, Rejected, Result, Skipped
from schemas.interaction import Interaction
from schemas.reject_reason import RejectReason
from worker.ingest.pace import PART_S, Pace
from worker.ingest.scoring import Scoring, Unscorable
from worker.ingest.verdict import verdict_of
from worker.rules.chooser import Chooser
from worker.rules.exports import destinations
from worker.rules.pieces import TracePiece
from worker.rules.records import Record
from worker.rules.settlement import Outcome, Settlement
from worker.rules.verdict import Threshold, Verdict, threshold_for
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.interactions import Interactions
from worker.store.sampling import Sampling
from worker.store.thresholds import Thresholds

DUPLICATE = "duplicate"
# How often a message may end the process that scores it, by whatever means, before it is given up.
MAX_ATTEMPTS = 5
WORKER_ENDED = "WorkerEnded"

# The operating system's, so that no message can choose whether people read it.
_RANDOM = random.SystemRandom()

log = structlog.get_logger(__name__)

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found at the place of a record: the results of a message, or of a trace whose root lies there.

    ``pieces`` are what a message says of traces.
    """

    record: Record
    results: tuple[Result, ...]
    pieces: tuple[TracePiece, ...] = ()

    @property
    def interactions(self) -> list[Interaction]:
        """What there is to score."""
        return [result.interaction for result in self.results if isinstance(result, Decoded)]

    @property
    def characters(self) -> int:
        """How much there is to score."""
        return sum(_characters(exchange_of(interaction)) for interaction in self.interactions)


class Judging:
    """Makes settlements of what was found, under one scorer and detector.

    Review tasks are sent on the ``channels``, results to those of the ``exports`` that know the exchange; ``uniform``
    draws from [0, 1) which answers become tasks. ``part_s`` is how long it may take to score what is given at a time,
    which ``pace`` says how much it is.
    """

    def __init__(
        self,
        *,
        interactions: Interactions,
        thresholds: Thresholds,
        sampling: Sampling,
        scoring: Scoring,
        scorer_id: int,
        detector: Detector,
        retry: RetryPolicy,
        metrics: Metrics,
        channels: Sequence[str] = (),
        exports: Sequence[str] = (),
        uniform: Callable[[], float] = _RANDOM.random,
        part_s: float = PART_S,
    ) -> None:
        self.scorer_id = scorer_id
        self.pace = Pace(part_s)
        self._interactions = interactions
        self._in_force = thresholds
        self._sampling = sampling
        self._scoring = scoring
        self._detector = detector
        self._retry = retry
        self._metrics = metrics
        self._channels = tuple(channels)
        self._exports = tuple(exports)
        self._uniform = uniform

    def settlements(self, found: Sequence[Found], *, gives_up: bool = False) -> list[Settlement]:
        """Give every result its outcome, in order; ``gives_up`` does so without scoring what is new.

        Waits while a transient fault lasts. Raises Stopped if a stop is asked for meanwhile, and ScorerBroken.
        """
        interactions = [interaction for one in found for interaction in one.interactions]
        if not interactions:
            # Of what is only collected there is much, and the database need not be asked about it.
            return list(_unjudged(found))
        groundings = self._groundings(interactions, gives_up=gives_up)
        apps = sorted({interaction.app for interaction in interactions})
        thresholds = self._retry.call(lambda: self._thresholds(apps), name="thresholds")
        chooser = self._retry.call(lambda: self._chooser(groundings), name="allowances")
        verdicts: dict[Key, Verdict] = {}
        with self._metrics.stage(Stage.JUDGE):
            return [
                replace(self._settlement(one.record, result, groundings, verdicts, thresholds, chooser), item=number)
                for one in found
                for number, result in enumerate(one.results, start=1)
            ]

    def _groundings(
        self, interactions: Sequence[Interaction], *, gives_up: bool
    ) -> dict[Key, AnswerGrounding | Unscorable]:
        """Score what this scorer has not judged yet, each content once; or give it up, if it ended the worker."""
        logged = {key_of(interaction): interaction for interaction in interactions}
        known = self._retry.call(lambda: self._known(list(logged)), name="known")
        fresh = {key: interaction for key, interaction in logged.items() if key not in known}
        if gives_up and fresh:
            log.error("scoring_given_up", attempts=MAX_ATTEMPTS)
            return dict.fromkeys(fresh, Unscorable(WORKER_ENDED))
        exchanges = [exchange_of(interaction) for interaction in fresh.values()]
        found = self._retry.call(lambda: self._score(exchanges), name="score")
        return dict(zip(fresh, found, strict=True))

    def _known(self, keys: Sequence[Key]) -> set[Key]:
        with self._metrics.stage(Stage.KNOWN):
            return self._interactions.known(self.scorer_id, keys)

    def _score(self, exchanges: Sequence[Exchange]) -> list[AnswerGrounding | Unscorable]:
        started = time.monotonic()
        with self._metrics.stage(Stage.SCORE):
            found = self._scoring.score(exchanges)
        self.pace.took(sum(map(_characters, exchanges)), time.monotonic() - started)
        self._metrics.tokens_scored(sum(_tokens(one) for one in found if isinstance(one, AnswerGrounding)))
        return found

    def _thresholds(self, apps: Sequence[str]) -> dict[str | None, Threshold]:
        in_force = self._in_force.in_force(self.scorer_id, apps)
        self._metrics.thresholds(in_force, apps)
        return in_force

    def _settlement(
        self,
        record: Record,
        item: Result,
        groundings: Mapping[Key, AnswerGrounding | Unscorable],
        verdicts: dict[Key, Verdict],
        thresholds: dict[str | None, Threshold],
        chooser: Chooser,
    ) -> Settlement:
        if not isinstance(item, Decoded):
            return _without_exchange(record, item)
        key = key_of(item.interaction)
        grounding = groundings.get(key)
        if grounding is None:
            return Settlement(record, Outcome.SKIPPED, DUPLICATE, decoded=item)
        if isinstance(grounding, Unscorable):
            return Settlement(record, Outcome.DEAD_LETTERED, RejectReason.SCORING_FAILED, grounding.error)
        # Every copy in the batch carries them. The store knows which is the first that it can book; the others are
        # duplicates of what is stored then, and of nothing else.
        if key not in verdicts:
            verdicts[key] = self._verdict(item.interaction, grounding, thresholds, chooser)
        found = Settlement(record, Outcome.SCORED, decoded=item, grounding=grounding, verdict=verdicts[key])
        if grounding.skip_reason is not None:
            return replace(found, outcome=Outcome.SKIPPED, reason=grounding.skip_reason)
        told = destinations(item.adapter, item.interaction.metadata, self._exports)
        return replace(found, channels=self._channels, exports=told)

    def _verdict(
        self,
        interaction: Interaction,
        grounding: AnswerGrounding,
        thresholds: dict[str | None, Threshold],
        chooser: Chooser,
    ) -> Verdict:
        threshold = threshold_for(interaction.app, thresholds)
        verdict = verdict_of(exchange_of(interaction), grounding, self._detector, threshold)
        return verdict if grounding.skip_reason is not None else chooser.chosen(interaction.app, verdict)

    def _chooser(self, groundings: Mapping[Key, AnswerGrounding | Unscorable]) -> Chooser:
        apps = {app for (app, *_), found in groundings.items() if isinstance(found, AnswerGrounding)}
        allowances = self._sampling.allowances(self.scorer_id, sorted(apps))
        is_common = any(allowance.policy.app is None for allowance in allowances.values())
        return Chooser(allowances, self._uniform, self._sampling.common_allowance() if is_common else None)


def _unjudged(found: Sequence[Found]) -> Iterator[Settlement]:
    for one in found:
        for number, result in enumerate(one.results, start=1):
            if not isinstance(result, Decoded):
                yield replace(_without_exchange(one.record, result), item=number)


def _without_exchange(record: Record, result: Rejected | Skipped) -> Settlement:
    if isinstance(result, Rejected):
        return Settlement(record, Outcome.DEAD_LETTERED, result.reason, result.detail)
    return Settlement(record, Outcome.SKIPPED, result.reason)


def _characters(exchange: Exchange) -> int:
    return len(exchange.question) + len(exchange.answer) + sum(len(passage.text) for passage in exchange.passages)


def _tokens(grounding: AnswerGrounding) -> int:
    read = grounding.truncation
    return read.context_tokens + read.answer_tokens - read.context_tokens_cut - read.answer_tokens_cut


def key_of(interaction: Interaction) -> Key:
    """What makes an interaction the same one: app, id and content."""
    return (interaction.app, interaction.interaction_id, interaction.content_hash)


def exchange_of(interaction: Interaction) -> Exchange:
    """The part of an interaction that is scored: without the marks in its answer."""
    passages = tuple(Passage(passage.id, passage.text) for passage in interaction.passages)
    return Exchange(interaction.question, passages, without_marks(interaction.answer, interaction.marks))
