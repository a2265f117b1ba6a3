"""One topic of ours, read to the end of a worker's days: the consumer and everything that it is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from worker.broker.source import RecordSource
from worker.ingest.consume import Consumer, Settling
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.endpoints import open_sink, open_source
from worker.ingest.placement import INSIST_SESSIONS, FirstStart, Placement
from worker.rules.settlement import Settled
from worker.runtime.engine import Engine
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.settings import Settings
from worker.store.offsets import Offsets


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads ``topic`` as a member of ``group``, at most ``batch_messages`` at a time.

    ``retry`` is the policy of the thread that polls, ``owner`` this process, as no other. ``part`` is what the topic is
    called among what has to be ready. ``on_ends`` is told where the partitions end, now and then.
    """

    settings: Settings
    offsets: Offsets
    owner: str
    stop: Stop
    telemetry: Telemetry
    retry: RetryPolicy
    topic: str
    group: str
    batch_messages: int
    first_start: FirstStart = "earliest"
    part: str = "kafka"
    on_ends: Callable[[Mapping[int, int]], None] = lambda _: None

    def open_source(self) -> RecordSource:
        """Join the group, however long the broker is away. Raises TopicMissing, BrokerMisconfigured, Stopped."""
        return self.retry.call(
            lambda: open_source(self.settings, self.owner, self.topic, self.group, self.batch_messages), name="source"
        )

    @contextmanager
    def opened(self, open_source: Callable[[], RecordSource]) -> Iterator[tuple[RecordSource, DeadLetters]]:
        """The source that ``open_source`` opens, and where its dead letters go, until the context is left."""
        settings = self.settings
        with ExitStack() as stack:
            sink = stack.enter_context(self.retry.call(lambda: open_sink(settings, self.owner), name="sink"))
            source = open_source()
            stack.callback(source.close)
            yield source, DeadLetters(sink, settings.dead_letter_topic, settings.max_message_bytes)

    def run(
        self,
        source: RecordSource,
        ingest: Settling,
        engine: Engine[Settled],
        on_settled: Callable[[Settled], None] = lambda _: None,
    ) -> None:
        """Read until a stop is asked for; ``ingest`` runs on ``engine``, and ``on_settled`` here, after each batch."""
        placement = Placement(
            source=source,
            offsets=self.offsets,
            topic=self.topic,
            consumer_group=self.group,
            owner=self.owner,
            first_start=self.first_start,
            insist_after_s=INSIST_SESSIONS * self.settings.session_timeout_s,
            telemetry=self.telemetry,
        )
        Consumer(
            source=source,
            placement=placement,
            ingest=ingest,
            engine=engine,
            topic=self.topic,
            batch_messages=self.batch_messages,
            batch_bytes=self.settings.batch_bytes,
            stop=self.stop,
            retry=self.retry,
            telemetry=self.telemetry,
            on_settled=on_settled,
            on_ends=self.on_ends,
            part=self.part,
        ).run()
