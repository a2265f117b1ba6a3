"""The worker's ends of a topic, opened as the settings say."""

from __future__ import annotations

from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.ingest.topics import MESSAGE_FRAME_BYTES
from worker.settings.security import kafka_security
from worker.settings.settings import Settings


def open_sink(settings: Settings, owner: str) -> RecordSink:
    """A producer that takes every message that may be read. Raises BrokerUnavailable, BrokerMisconfigured."""
    return RecordSink(
        settings.kafka_bootstrap_servers,
        client_id=owner,
        max_request_bytes=settings.max_message_bytes + MESSAGE_FRAME_BYTES,
        security=kafka_security(settings),
    )


def open_source(settings: Settings, owner: str, topic: str, group: str, batch_messages: int) -> RecordSource:
    """A member of a group on a topic. Raises BrokerUnavailable, TopicMissing, BrokerMisconfigured."""
    return RecordSource(
        settings.kafka_bootstrap_servers,
        topic,
        group,
        client_id=owner,
        session_timeout_ms=int(settings.session_timeout_s * 1000),
        max_poll_interval_ms=int(settings.max_poll_interval_s * 1000),
        max_poll_records=batch_messages,
        partition_fetch_max_bytes=settings.max_message_bytes + MESSAGE_FRAME_BYTES,
        instance_id=settings.instance_id,
        security=kafka_security(settings),
    )
