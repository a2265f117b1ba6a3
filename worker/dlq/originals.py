"""The bytes of a dead letter: in the letter, or in the original topic if that still has them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum

from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason
from worker.broker.errors import RecordsUnreadable, TopicMissing
from worker.broker.scan import TopicScan
from worker.dlq.letters import Letter
from worker.rules.records import Record


class Obstacle(StrEnum):
    """Why a letter cannot be replayed, or is not: the end of a sentence that begins with the letter."""

    SUPERSEDED = "a newer letter of the same message stands for it"
    TOO_OFTEN = "replayed as often as --max-replays allows"
    TOO_LARGE = "larger than GASP_MAX_MESSAGE_BYTES, or than the topic takes"
    ELSEWHERE = "its bytes lie in another topic than GASP_TOPIC; name that with --topic"
    GONE = "its bytes are no longer in the original topic"
    UNREADABLE = "its bytes cannot be decoded by this client"


class Originals:
    """Finds the bytes of letters. A topic is opened when the first letter points into it.

    Only ``topics`` are read: a letter is a claim, and what anybody may write into the dead-letter topic must not choose
    which topics we read from and copy.
    """

    def __init__(self, open_scan: Callable[[str], TopicScan], topics: Collection[str]) -> None:
        self._open_scan = open_scan
        self._topics = topics
        self._scans: dict[str, TopicScan] = {}

    def value(self, letter: Letter) -> bytes | Obstacle | None:
        """The message's value, or why it cannot be had. Raises BrokerUnavailable, BrokerMisconfigured."""
        facts = letter.facts
        if not letter.is_by_reference:
            return letter.record.value if facts.value_attached else None
        if facts.topic not in self._topics:
            return Obstacle.ELSEWHERE
        try:
            record = self._scan(facts.topic).find(facts.partition, facts.offset)
        except RecordsUnreadable:
            return Obstacle.UNREADABLE
        except TopicMissing:
            return Obstacle.GONE
        if record is None or not _is_the_same(record, facts):
            return Obstacle.GONE
        return Obstacle.TOO_LARGE if record.left_out_bytes else record.value

    def _scan(self, topic: str) -> TopicScan:
        if topic not in self._scans:
            self._scans[topic] = self._open_scan(topic)
        return self._scans[topic]


def _is_the_same(record: Record, facts: DeadLetter) -> bool:
    """Whether it is the rejected message that lies there: a topic created anew has other messages at its offsets."""
    if facts.reason is RejectReason.UNREADABLE:
        # Nothing was known of it.
        return True
    return (record.size, record.timestamp_ms) == (facts.size_bytes, facts.timestamp_ms)
