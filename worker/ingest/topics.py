"""The topics that the audit needs."""

from __future__ import annotations

from worker.broker.admin import NewTopic
from worker.settings.settings import Settings

# What key, headers and framing may add to a message.
MESSAGE_FRAME_BYTES = 64 * 1024


def wanted_topics(settings: Settings, *, partitions: int, replication: int) -> list[NewTopic]:
    """Interactions, dead letters, review tasks and labels, so far as they are set.

    All take messages up to the size limit, so that a dead letter fits as it is.
    """
    config = {"max.message.bytes": str(settings.max_message_bytes + MESSAGE_FRAME_BYTES)}
    counts = {
        **dict.fromkeys(settings.topics, partitions),
        settings.dead_letter_topic: 1,
        settings.review_tasks_topic: 1,
        settings.review_labels_topic: 1,
    }
    return [NewTopic(name, count, replication, config) for name, count in counts.items() if name]
