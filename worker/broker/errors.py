"""What can go wrong with Kafka.

BrokerError
├── BrokerUnavailable      transient: pause, back off, try again
├── BrokerMisconfigured    a person must act; the message says what to do
│   └── TopicMissing       the topic does not exist
├── RecordTooLarge         one record is over the client's or the topic's size limit; send it by reference
├── SendFailed             records were refused for good
└── RecordsUnreadable      a stretch of a partition cannot be decoded by this client; go on behind it
"""

from __future__ import annotations

from collections.abc import Mapping


class BrokerError(Exception):
    """Base of everything worker.broker raises on purpose. Messages never hold the content of a record."""


class BrokerUnavailable(BrokerError):  # noqa: N818 - reads as the fact it states
    """The broker does not answer or is not ready. Nothing is lost: try again later."""


class BrokerMisconfigured(BrokerError):  # noqa: N818 - reads as the fact it states
    """Trying again is no use: a setting, a permission or a topic has to change first."""


class TopicMissing(BrokerMisconfigured):
    """There is no topic of this name, and it is not created in passing."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} does not exist; create it with `gasp-worker topics`")
        self.topic = topic


class RecordTooLarge(BrokerError):  # noqa: N818 - reads as the fact it states
    """A record is larger than the client or the topic allows. ``size_bytes`` counts key, value and headers."""

    def __init__(self, topic: str, size_bytes: int) -> None:
        super().__init__(f"a record of {size_bytes} bytes is too large for topic {topic} (max.message.bytes)")
        self.topic = topic
        self.size_bytes = size_bytes


class SendFailed(BrokerError):  # noqa: N818 - reads as the fact it states
    """Records were refused for good. ``reasons`` counts them by (topic, name of the error)."""

    def __init__(self, reasons: Mapping[tuple[str, str], int]) -> None:
        super().__init__(f"records were refused ({counted(reasons)}); look at the topic's settings and ACLs")
        self.reasons = dict(reasons)


def counted(reasons: Mapping[tuple[str, str], int]) -> str:
    """The reasons, such as ``2 to some-topic: UnknownError``."""
    return ", ".join(f"{count} to {topic}: {reason}" for (topic, reason), count in sorted(reasons.items()))


class RecordsUnreadable(BrokerError):  # noqa: N818 - reads as the fact it states
    """The offsets from ``offset`` up to but not including ``next_offset`` hold bytes that this client cannot decode.

    A broken checksum, say, or a header name that is not UTF-8; one such record hides the rest of its batch. From
    ``position`` (None: ``offset``) up to them there are no records.
    """

    def __init__(
        self, topic: str, partition: int, offset: int, next_offset: int, *, position: int | None = None
    ) -> None:
        super().__init__(f"{topic}[{partition}] cannot be decoded from offset {offset} up to {next_offset}")
        self.topic = topic
        self.partition = partition
        self.position = offset if position is None else position
        self.offset = offset
        self.next_offset = next_offset
