"""The newest messages of a topic, read from the side."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import worker.cli
from tests.brokers import Broker


def test_the_newest_messages_of_each_partition_are_read(tansu: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = tansu.create_topic(1)
    rows = [{"answer": f"A{number}", "contexts": ["c"]} for number in range(6)]
    tansu.send(topic, [json.dumps(row).encode() for row in rows])
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", tansu.bootstrap)
    monkeypatch.delenv("GASP_DATABASE_URL", raising=False)
    done = CliRunner().invoke(worker.cli.app, ["inspect", "--topic", topic, "--limit", "2"])
    assert done.exit_code == 0, done.output
    assert f"{topic}/0/4  flat" in done.stdout
    assert [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("  answer")] == ["A4", "A5"]
    assert "2 messages, 2 exchanges" in done.stdout
