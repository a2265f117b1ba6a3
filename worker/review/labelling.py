"""Reads the label topic, in a thread of its own, for as long as its context is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from worker.broker.errors import TopicMissing
from worker.broker.source import RecordSource
from worker.errors import Stopped
from worker.ingest.consume import Consumer
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.endpoints import open_sink, open_source
from worker.ingest.placement import INSIST_SESSIONS, Placement
from worker.review.intake import LabelIntake
from worker.rules.settlement import Settled
from worker.runtime.background import Background
from worker.runtime.engine import Engine
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.settings import Settings
from worker.store.label_settlements import LabelSettlements
from worker.store.labels import Labels
from worker.store.offsets import Offsets

BATCH_MESSAGES = 200
# How often it is looked whether the topic is there by now.
MISSING_LOOK_S = 10.0

log = structlog.get_logger(__name__)


@contextmanager
def labelling(
    settings: Settings,
    *,
    offsets: Offsets,
    labels: Labels,
    settlements: LabelSettlements,
    owner: str,
    stop: Stop,
    telemetry: Telemetry,
) -> Iterator[None]:
    """Take labels in until the context is left; nothing happens without a label topic in the settings.

    A topic that does not exist is waited for. Any other fault that does not pass asks for the stop and is raised.
    """
    if not settings.review_labels_topic:
        yield
        return
    work = _Labelling(settings, offsets, labels, settlements, owner, stop, telemetry)
    with Background("review_labels", work.run, stop):
        yield


@dataclass(frozen=True, slots=True)
class _Labelling:
    """The consumer of the label topic, in a group of its own."""

    settings: Settings
    offsets: Offsets
    labels: Labels
    settlements: LabelSettlements
    owner: str
    stop: Stop
    telemetry: Telemetry

    def run(self) -> None:
        settings = self.settings
        poll = RetryPolicy(self.stop, self.telemetry, part="labels_poll", within_s=settings.wedged_after_s)
        with ExitStack() as stack:
            stack.callback(self.telemetry.liveness.excuse, "labels_poll")
            sink = stack.enter_context(poll.call(lambda: open_sink(settings, self.owner), name="sink"))
            source = self._source(poll)
            stack.callback(source.close)
            work = RetryPolicy(self.stop, self.telemetry, part="labels", within_s=settings.work_timeout_s)
            stack.callback(self.telemetry.liveness.excuse, "labels")
            letters = DeadLetters(sink, settings.dead_letter_topic, settings.max_message_bytes)
            engine = stack.enter_context(
                Engine[Settled](None, 0.0, grace_s=self.stop.remaining_s, beat=work.beat, name="labels")
            )
            self._consumer(source, letters, engine, poll, work).run()

    def _source(self, retry: RetryPolicy) -> RecordSource:
        settings = self.settings
        topic, group = settings.review_labels_topic, f"{settings.consumer_group}-labels"
        while True:
            try:
                return retry.call(
                    lambda: open_source(settings, self.owner, topic, group, BATCH_MESSAGES), name="source"
                )
            except TopicMissing:
                log.warning("labels_topic_missing", topic=topic)
                if self.stop.wait(MISSING_LOOK_S):
                    raise Stopped("source") from None

    def _consumer(
        self, source: RecordSource, letters: DeadLetters, engine: Engine[Settled], poll: RetryPolicy, work: RetryPolicy
    ) -> Consumer:
        """``poll`` and ``work`` are the retry policies of the thread that polls and of that which stores."""
        settings = self.settings
        intake = LabelIntake(
            labels=self.labels,
            settlements=self.settlements,
            dead_letters=letters,
            max_message_bytes=settings.max_message_bytes,
            retry=work,
            metrics=self.telemetry.metrics,
        )
        placement = Placement(
            source=source,
            offsets=self.offsets,
            topic=settings.review_labels_topic,
            owner=self.owner,
            first_start="earliest",
            insist_after_s=INSIST_SESSIONS * settings.session_timeout_s,
            telemetry=self.telemetry,
        )
        return Consumer(
            source=source,
            placement=placement,
            ingest=intake,
            engine=engine,
            topic=settings.review_labels_topic,
            batch_messages=BATCH_MESSAGES,
            batch_bytes=settings.batch_bytes,
            stop=self.stop,
            retry=poll,
            telemetry=self.telemetry,
            part="kafka_labels",
        )
