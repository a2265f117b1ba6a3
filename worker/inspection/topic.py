"""The newest messages of a topic, read outside any consumer group."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.reject_reason import RejectReason
from worker.broker.admin import BrokerAdmin
from worker.broker.scan import TopicScan
from worker.broker.unreadable import Unreadable
from worker.settings.security import kafka_security
from worker.settings.settings import BrokerSettings
from worker.terminal.inputs import Message

CLIENT_ID = "gasp-inspect"


def newest_messages(settings: BrokerSettings, topic: str, limit: int) -> Iterator[Message]:
    """The last messages of each partition, about ``limit`` in all, partition by partition.

    Raises as ``TopicScan`` does.
    """
    security = kafka_security(settings)
    with BrokerAdmin(settings.kafka_bootstrap_servers, client_id=CLIENT_ID, security=security) as admin:
        ends = admin.extent(topic).ends
    share = -(-limit // max(1, len(ends)))
    since = {partition: max(0, end - share) for partition, end in ends.items()}
    scan = TopicScan(settings.kafka_bootstrap_servers, topic, client_id=CLIENT_ID, security=security, since=since)
    for found in scan:
        place = f"{topic}/{found.partition}/{found.offset}"
        if isinstance(found, Unreadable):
            yield Message(place, None, problem=RejectReason.UNREADABLE)
        else:
            yield Message(place, found.value, found.headers, found.key)
