"""Reads the label topic, in a thread of its own, for as long as its context is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from worker.broker.errors import TopicMissing
from worker.broker.source import RecordSource
from worker.errors import Stopped
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.topic_reader import TopicReader
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
        settings, stop, telemetry = self.settings, self.stop, self.telemetry
        poll = RetryPolicy(stop, telemetry, part="labels_poll", within_s=settings.wedged_after_s)
        reader = TopicReader(
            settings=settings,
            offsets=self.offsets,
            owner=self.owner,
            stop=stop,
            telemetry=telemetry,
            retry=poll,
            topic=settings.review_labels_topic,
            group=f"{settings.consumer_group}-labels",
            batch_messages=BATCH_MESSAGES,
            part="kafka_labels",
        )
        with ExitStack() as stack:
            stack.callback(telemetry.liveness.excuse, "labels_poll")
            source, letters = stack.enter_context(reader.opened(lambda: self._source(reader)))
            work = RetryPolicy(stop, telemetry, part="labels", within_s=settings.work_timeout_s)
            stack.callback(telemetry.liveness.excuse, "labels")
            engine = Engine[Settled](None, 0.0, grace_s=stop.remaining_s, beat=work.beat, name="labels")
            reader.run(source, self._intake(letters, work), stack.enter_context(engine))

    def _source(self, reader: TopicReader) -> RecordSource:
        while True:
            try:
                return reader.open_source()
            except TopicMissing:
                log.warning("labels_topic_missing", topic=reader.topic)
                if self.stop.wait(MISSING_LOOK_S):
                    raise Stopped("source") from None

    def _intake(self, letters: DeadLetters, work: RetryPolicy) -> LabelIntake:
        """``work`` is the retry policy of the thread that stores."""
        return LabelIntake(
            labels=self.labels,
            settlements=self.settlements,
            dead_letters=letters,
            max_message_bytes=self.settings.max_message_bytes,
            retry=work,
            metrics=self.telemetry.metrics,
        )
