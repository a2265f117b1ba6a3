"""Dead letters: the original message, byte for byte, with the reason and the place it came from."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime

from schemas.dead_letter import DeadLetter, RejectReason
from worker.broker.errors import RecordTooLarge, SendFailed
from worker.broker.sink import Place, RecordSink
from worker.settlement import Outcome, Settlement

FLUSH_TIMEOUT_S = 30.0


class DeadLetters:
    """Sends dead letters to their topic and waits until the broker has them."""

    def __init__(self, sink: RecordSink, topic: str, max_message_bytes: int) -> None:
        self._sink = sink
        self._topic = topic
        self._max_message_bytes = max_message_bytes

    def send(self, settlements: Sequence[Settlement]) -> None:
        """Send the dead-lettered ones among ``settlements``.

        A message over the size limit, or larger than the topic takes, goes by reference: its place and reason without
        its bytes, which stay in the original topic. Raises BrokerUnavailable if the broker did not confirm them all.
        """
        dead = [settlement for settlement in settlements if settlement.outcome is Outcome.DEAD_LETTERED]
        if not dead:
            return
        sent = [(settlement, self._try_whole(settlement)) for settlement in dead]
        # Each future knows its own refusal.
        with suppress(SendFailed):
            self._sink.flush(FLUSH_TIMEOUT_S)
        for settlement in [settlement for settlement, place in sent if _is_too_large(place)]:
            self._send_one(settlement, attached=False)
        self._sink.flush(FLUSH_TIMEOUT_S)

    def _try_whole(self, settlement: Settlement) -> Future[Place] | None:
        """Send with the bytes if the limit allows; None if the topic does not take so large a message."""
        record = settlement.record
        fits = record.value is not None and record.size <= self._max_message_bytes
        try:
            return self._send_one(settlement, attached=fits)
        except RecordTooLarge:
            return None

    def _send_one(self, settlement: Settlement, *, attached: bool) -> Future[Place]:
        record = settlement.record
        letter = DeadLetter(
            reason=RejectReason(str(settlement.reason)),
            detail=settlement.detail or "",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            size_bytes=record.size,
            value_attached=attached,
            rejected_at=datetime.now(UTC),
        )
        value = record.value if attached else None
        return self._sink.send(self._topic, value, key=record.key, headers=letter.to_headers(record.headers))


def _is_too_large(place: Future[Place] | None) -> bool:
    """Whether the topic does not take it. Raises whatever else kept it from being stored."""
    error = place.exception() if place else None
    if error is not None and not isinstance(error, RecordTooLarge):
        raise error
    return place is None or error is not None
