"""A worker whose messages name schemas of a registry that is away at first."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import fastavro

from tests.brokers import Broker
from tests.exchanges import exchange
from tests.registry_server import registry_server
from tests.waiting import wait_until
from tests.workers import Deployment

AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "interaction_id", "type": "string"},
        {"name": "question", "type": "string"},
        {"name": "passages", "type": {"type": "array", "items": "string"}},
        {"name": "answer", "type": "string"},
    ],
}


def avro(number: int) -> bytes:
    row = exchange(number)
    value = {
        "interaction_id": str(row["interaction_id"]),
        "question": str(row["question"]),
        "passages": ["Every amplifier carries a warranty of 30 months."],
        "answer": str(row["answer"]),
    }
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(AVRO), value)
    return buffer.getvalue()


def test_a_batch_waits_for_the_registry_and_loses_nothing(tansu: Broker, deploy: Callable[..., Deployment]) -> None:
    with registry_server() as registry:
        registry.status = 503
        registry.knows("/schemas/ids/7", json.dumps(AVRO))
        deployment = deploy(tansu, schema_registry_url=registry.url)
        known, unknown = b"\x00\x00\x00\x00\x07", b"\x00\x00\x00\x00\x08"
        tansu.send(deployment.topic, [known + avro(1), unknown + avro(2), known + avro(3)])
        with deployment.worker("consume,attribute") as worker:
            wait_until(lambda: worker.events("transient_fault") > 0, what="a fault that passes")
            assert deployment.count("ledger") == 0
            registry.status = None
            deployment.wait_settled(3)
    outcomes = deployment.rows("SELECT outcome, reason FROM ledger ORDER BY record_offset")
    assert [(one["outcome"], one["reason"]) for one in outcomes] == [
        ("scored", None),
        ("dead_lettered", "unknown_schema"),
        ("scored", None),
    ]
