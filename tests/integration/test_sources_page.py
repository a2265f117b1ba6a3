"""The producer of docs/sources.md, run as it stands there."""

from __future__ import annotations

from typing import Any

from tests.brokers import Broker
from tests.unit.test_sources_page import blocks
from worker.broker.scan import TopicScan
from worker.broker.unreadable import Unreadable
from worker.inspection.inspection import Inspection, ReadExchange
from worker.settings.reading import Reading
from worker.terminal.inputs import Message

DOCUMENTS = [{"id": "kb-12", "text": "The warranty lasts 30 months.", "score": 0.83}]


def test_what_the_example_logs_is_read(tansu: Broker) -> None:
    topic = tansu.create_topic()
    (example,) = (block for block in blocks("python") if "KafkaProducer" in block)
    example = example.replace("broker:9092", tansu.bootstrap).replace("gasp.interactions.v1", topic)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/sources.md", "exec"), names)  # noqa: S102 - the page is ours
    names["log_exchange"]("4711", "How long is the warranty?", DOCUMENTS, "It lasts 30 months.", "a-model")
    names["log_exchange"]("4712", "And the battery?", [], "I do not know.", "a-model")
    names["producer"].close()
    messages = [
        Message(str(one.offset), one.value, one.headers, one.key)
        for one in TopicScan(tansu.bootstrap, topic)
        if not isinstance(one, Unreadable)
    ]
    first, second = Inspection(Reading()).read(messages)
    assert isinstance(first, ReadExchange)
    assert (first.format, first.missing) == ("native", ())
    logged = first.interaction
    assert (logged.app, logged.question, logged.answer) == (
        "support-bot",
        "How long is the warranty?",
        "It lasts 30 months.",
    )
    assert [(one.id, one.text, one.score) for one in logged.passages] == [tuple(DOCUMENTS[0].values())]
    assert isinstance(second, ReadExchange)
    assert second.missing == ("passages",)
