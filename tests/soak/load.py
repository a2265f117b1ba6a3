"""The producer: keeps a backlog until it is told that it is enough, and logs where each message lies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count, islice

from tests.soak.expectation import Place
from tests.soak.journal import Journal
from tests.soak.messages import Message
from tests.soak.sender import FAULTS, Keys, Sender, TransactionalSender

BATCH_MESSAGES = 100
# Of a transaction that is aborted. Batches follow one another in this order, again and again.
ABORTED_MESSAGES = 10
PLAIN, COMMITTED, ABORTED_AND_COMMITTED = "plain", "committed", "aborted and committed"
MANNERS = (PLAIN, COMMITTED, PLAIN, ABORTED_AND_COMMITTED)
LOOK_S = 0.05
PAUSE_S = 0.5


class Load:
    """Runs in a thread of its own, through outages of the broker.

    Every other batch goes in a transaction, and every fourth has one before it that is aborted. The last of all is
    aborted, too, in every partition, so that no partition ends in a record.

    ``enough`` is asked with the number of messages sent. ``messages`` are those that were sent, by number, ``places``
    where the broker said that each lies; ``reach`` is the offset behind the last one of a partition, the aborted
    among them; ``fault`` is what ended it early. ``committed`` and ``aborted`` count transactions.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        messages: Iterator[Message],
        aborted: Iterator[Message],
        *,
        backlog: int,
        settled: Callable[[], int],
        enough: Callable[[int], bool],
        journal: Journal,
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._source = messages
        self._aborted_source = aborted
        self._backlog = backlog
        self._settled = settled
        self._enough = enough
        self._journal = journal
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self._keys = Keys()
        self._plain: Sender | None = None
        self._transactional: TransactionalSender | None = None
        self.messages: dict[int, Message] = {}
        self.places: dict[Place, int] = {}
        self.reach: dict[int, int] = {}
        self.committed = 0
        self.aborted = 0
        self.fault: Exception | None = None

    @property
    def sent(self) -> int:
        """Messages that the broker has acknowledged."""
        return len(self.places)

    @property
    def waiting(self) -> int:
        """Offsets in front of the partitions' positions, by what was acknowledged and settled."""
        return sum(self.reach.copy().values()) - self._settled()

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
            for number in count():
                if self._enough(self.sent) or self._stop.is_set():
                    break
                self._wait_for_room()
                self._send_all(list(islice(self._source, BATCH_MESSAGES)), MANNERS[number % len(MANNERS)])
            self._end_in_nothing()
        except Exception as error:  # noqa: BLE001 - the thread that waits for us reports it
            self.fault = error
        finally:
            self._close()

    def _wait_for_room(self) -> None:
        while self.waiting > self._backlog and not self._stop.wait(LOOK_S):
            continue

    def _send_all(self, batch: list[Message], manner: str) -> None:
        self.messages |= {one.number: one for one in batch}
        if manner == ABORTED_AND_COMMITTED:
            self._abort(list(islice(self._aborted_source, ABORTED_MESSAGES)))
        while batch and not self._stop.is_set():
            batch = self._send(batch) if manner == PLAIN else self._commit(batch)

    def _send(self, batch: Sequence[Message]) -> list[Message]:
        """Send; gives those that must be sent again, in their order. They may lie in the topic all the same."""
        places: Sequence[Place | None] = [None] * len(batch)
        with suppress(*FAULTS):
            self._plain = sender = self._plain or Sender(self._bootstrap, self._topic, self._keys)
            places = sender.send(batch)
        left = []
        for message, place in zip(batch, places, strict=True):
            if place is None:
                left.append(message)
            else:
                self._note(message, place)
        if left:
            self._pause()
        return left

    def _commit(self, batch: list[Message]) -> list[Message]:
        """Send in a transaction; gives all or none, as above."""
        try:
            places = self._transactions().commit(batch)
        except FAULTS:
            self._pause()
            return batch
        self.committed += 1
        for message, place in zip(batch, places, strict=True):
            self._note(message, place)
        return []

    def _abort(self, batch: Sequence[Message]) -> None:
        """Send in a transaction that is aborted, until the broker says that it is."""
        while batch and not self._stop.is_set():
            try:
                places = self._transactions().abort(batch)
            except FAULTS:
                self._pause()
                continue
            self.aborted += 1
            for place in places:
                self._reached(place)
            self._journal.note("aborted", numbers=[one.number for one in batch])
            return

    def _end_in_nothing(self) -> None:
        batch = list(islice(self._aborted_source, len(self._keys.partitions)))
        for message, partition in zip(batch, self._keys.partitions, strict=True):
            self._keys.choose(message.key, partition)
        self._abort(batch)

    def _transactions(self) -> TransactionalSender:
        if self._transactional is None:
            self._transactional = TransactionalSender(self._bootstrap, self._topic, self._keys)
        return self._transactional

    def _note(self, message: Message, place: Place) -> None:
        partition, offset = place
        self.places[place] = message.number
        self._reached(place)
        self._journal.note(
            "sent",
            number=message.number,
            kind=message.kind,
            interaction_id=message.interaction_id,
            partition=partition,
            offset=offset,
            outcome=message.outcome,
        )

    def _reached(self, place: Place) -> None:
        partition, offset = place
        self.reach[partition] = max(self.reach.get(partition, 0), offset + 1)

    def _pause(self) -> None:
        self._close()
        self._stop.wait(PAUSE_S)

    def _close(self) -> None:
        senders, self._plain, self._transactional = (self._plain, self._transactional), None, None
        for sender in senders:
            if sender is not None:
                sender.close()
