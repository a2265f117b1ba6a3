"""Replay: messages of a file into the topic, as they are. What is wrong with one is for the audit to say."""

from __future__ import annotations

from collections.abc import Iterable

from worker.broker.sink import RecordSink
from worker.terminal.inputs import Message

FLUSH_EVERY = 500
FLUSH_TIMEOUT_S = 60.0


def replay_messages(messages: Iterable[Message], sink: RecordSink, topic: str) -> int:
    """Send each message with its headers and key; gives how many were sent once the broker has them all."""
    sent = 0
    for message in messages:
        sink.send(topic, message.value, key=message.sending_key, headers=message.headers)
        sent += 1
        if sent % FLUSH_EVERY == 0:
            sink.flush(FLUSH_TIMEOUT_S)
    sink.flush(FLUSH_TIMEOUT_S)
    return sent
