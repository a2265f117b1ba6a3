"""Dead letters: the original message, byte for byte, with the reason and the place it came from."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from enum import IntEnum

from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason
from worker.broker.errors import RecordTooLarge, SendFailed
from worker.broker.sink import Place, RecordSink
from worker.rules.settlement import Settlement, by_record, letter_of

FLUSH_TIMEOUT_S = 30.0


class Form(IntEnum):
    """What of the original a letter brings, most first."""

    WHOLE = 0
    WITHOUT_VALUE = 1
    PLACE_ONLY = 2


class DeadLetters:
    """Sends dead letters to their topic and waits until the broker has them."""

    def __init__(self, sink: RecordSink, topic: str, max_message_bytes: int) -> None:
        self._sink = sink
        self._topic = topic
        self._max_message_bytes = max_message_bytes

    def send(self, settlements: Sequence[Settlement], first: Form = Form.WHOLE) -> None:
        """Send the records of which a result is a dead letter, each once; ``first`` is the most that is had of them.

        A message over the size limit, or larger than the topic takes, goes by reference: its place and reason without
        its value, and if its headers alone are too large, without them and its key; all that stays in the original
        topic. Raises BrokerUnavailable if the broker did not confirm them all.
        """
        dead = [letter for results in by_record(settlements) if (letter := letter_of(results)) is not None]
        for form in list(Form)[first:]:
            dead = self._send_all(dead, form)
        if dead:
            raise RecordTooLarge(self._topic, dead[0].record.memory_bytes)

    def _send_all(self, dead: Sequence[Settlement], form: Form) -> list[Settlement]:
        """Send them in this form; give those that the topic does not take so."""
        if not dead:
            return []
        sent = [(settlement, self._try_one(settlement, form)) for settlement in dead]
        # Each future knows its own refusal.
        with suppress(SendFailed):
            self._sink.flush(FLUSH_TIMEOUT_S)
        return [settlement for settlement, place in sent if _is_too_large(place)]

    def _try_one(self, settlement: Settlement, form: Form) -> Future[Place] | None:
        """None if the topic is known not to take so large a message."""
        try:
            return self._send_one(settlement, form)
        except RecordTooLarge:
            return None

    def _send_one(self, settlement: Settlement, form: Form) -> Future[Place]:
        record = settlement.record
        has_value = form is Form.WHOLE and record.value is not None and record.size <= self._max_message_bytes
        has_headers = form is not Form.PLACE_ONLY
        letter = DeadLetter(
            reason=RejectReason(str(settlement.reason)),
            detail=settlement.detail or "",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            size_bytes=record.size,
            value_attached=has_value,
            headers_attached=has_headers,
            rejected_at=datetime.now(UTC),
        )
        return self._sink.send(
            self._topic,
            record.value if has_value else None,
            key=record.key if has_headers else None,
            headers=letter.to_headers(record.headers if has_headers else ()),
        )


def _is_too_large(place: Future[Place] | None) -> bool:
    """Whether the topic does not take it. Raises whatever else kept it from being stored."""
    error = place.exception() if place else None
    if error is not None and not isinstance(error, RecordTooLarge):
        raise error
    return place is None or error is not None
