"""The producer: keeps a backlog until it is told that it is enough, and logs where each message lies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice

from tests.soak.journal import Journal
from tests.soak.messages import Message
from worker.broker.errors import BrokerUnavailable
from worker.broker.sink import Place, RecordSink

BATCH_MESSAGES = 100
LOOK_S = 0.05
FLUSH_TIMEOUT_S = 10.0
PAUSE_S = 0.5


class Load:
    """Runs in a thread of its own, through outages of the broker.

    ``enough`` is asked with the number of messages sent. ``messages`` are those that were sent, by number, ``places``
    where the broker said that each lies; ``fault`` is what ended it early.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        messages: Iterator[Message],
        *,
        backlog: int,
        settled: Callable[[], int],
        enough: Callable[[int], bool],
        journal: Journal,
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._source = messages
        self._backlog = backlog
        self._settled = settled
        self._enough = enough
        self._journal = journal
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self._sink: RecordSink | None = None
        self.messages: dict[int, Message] = {}
        self.places: dict[tuple[int, int], int] = {}
        self.fault: Exception | None = None

    @property
    def sent(self) -> int:
        """Messages that the broker has acknowledged."""
        return len(self.places)

    @property
    def done(self) -> bool:
        """Whether everything is sent, or never will be."""
        return not self._thread.is_alive()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._enough(self.sent) and not self._stop.is_set():
                self._wait_for_room()
                batch = list(islice(self._source, BATCH_MESSAGES))
                self.messages |= {one.number: one for one in batch}
                while batch and not self._stop.is_set():
                    batch = self._send(batch)
        except Exception as error:  # noqa: BLE001 - the thread that waits for us reports it
            self.fault = error
        finally:
            self._close()

    def _wait_for_room(self) -> None:
        while self.sent - self._settled() > self._backlog and not self._stop.wait(LOOK_S):
            continue

    def _send(self, batch: Sequence[Message]) -> list[Message]:
        """Send; gives those that must be sent again, in their order. They may lie in the topic all the same."""
        futures: list[Future[Place]] = []
        try:
            self._sink = sink = self._sink or RecordSink(self._bootstrap)
            futures.extend(sink.send(self._topic, one.value, key=one.key, headers=one.headers) for one in batch)
            sink.flush(FLUSH_TIMEOUT_S)
        except BrokerUnavailable:
            self._close()
            self._stop.wait(PAUSE_S)
        known = [*futures, *[Future[Place]() for _ in batch[len(futures) :]]]
        return [message for message, future in zip(batch, known, strict=True) if not self._note(message, future)]

    def _note(self, message: Message, future: Future[Place]) -> bool:
        if not future.done() or future.exception() is not None:
            return False
        place = future.result()
        self.places[place.partition, place.offset] = message.number
        self._journal.note(
            "sent",
            number=message.number,
            kind=message.kind,
            interaction_id=message.interaction_id,
            partition=place.partition,
            offset=place.offset,
            outcome=message.outcome,
        )
        return True

    def _close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()
