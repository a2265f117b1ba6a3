"""docs/sources.md against the code: it names every format and convention, and its configurations fit the settings."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.formats import AUTO, FORMATS
from schemas.traces.conventions import CONVENTIONS, LOG_CONVENTIONS
from worker.ingest.topics import MESSAGE_FRAME_BYTES
from worker.settings.settings import PREFIX, Settings

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def table(head: str) -> list[list[str]]:
    """The rows below a table's head."""
    body = PAGE.split(f"\n| {head}", 1)[1].split("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in body.splitlines()[2:]]


def names(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def exports() -> dict[str, str]:
    found: dict[str, str] = {}
    for block in blocks("sh"):
        for line in block.splitlines():
            if line.startswith("export "):
                pairs = (word.partition("=") for word in shlex.split(line, comments=True)[1:])
                found.update((name, value) for name, _, value in pairs)
    return found


@pytest.fixture(scope="module")
def collector() -> dict[str, Any]:
    (block,) = blocks("yaml")
    loaded = yaml.safe_load(block)
    assert isinstance(loaded, dict)
    return loaded


def test_the_table_names_every_format_and_no_other() -> None:
    listed = [names(row[2]) for row in table("my logs are of")]
    assert all(listed)
    assert set().union(*listed) == set(FORMATS) - {AUTO}


def test_the_table_names_every_convention_of_opentelemetry_and_no_other() -> None:
    listed = [names(row[0]) for row in table("instrumented with")]
    assert set().union(*listed) == {one.name for one in CONVENTIONS} | {one.name for one in LOG_CONVENTIONS}


def test_the_topics_of_the_collector_are_those_that_the_worker_is_told_to_read(collector: dict[str, Any]) -> None:
    kafka = collector["exporters"]["kafka"]
    topics = exports()["GASP_TOPIC"].split(",")
    assert {kafka[signal]["topic"] for signal in ("traces", "logs")} <= set(topics)
    assert Settings.model_fields["topic"].default in topics


def test_the_collector_writes_messages_as_large_as_a_worker_takes(collector: dict[str, Any]) -> None:
    limit = collector["exporters"]["kafka"]["producer"]["max_message_bytes"]
    assert 0 <= Settings.model_fields["max_message_bytes"].default - limit < MESSAGE_FRAME_BYTES


def test_the_parts_of_the_collector_that_its_pipelines_name_are_there(collector: dict[str, Any]) -> None:
    for signal, pipeline in collector["service"]["pipelines"].items():
        assert signal in collector["exporters"]["kafka"]
        for kind, parts in pipeline.items():
            assert set(parts) <= set(collector[kind])


def test_the_settings_that_are_exported_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name: value for name, value in exports().items() if name.startswith(PREFIX)}
    # The document store is shown in two ways, of which the second takes no query.
    assert ours.pop("GASP_DOCUMENTS_QUERY")
    assert {"GASP_TOPIC", "GASP_DOCUMENTS_URL"} <= set(ours)
    ours |= {"GASP_DATABASE_URL": "postgresql://db/gasp", "GASP_KAFKA_BOOTSTRAP_SERVERS": "broker:9092"}
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    assert Settings().topics[0] == Settings.model_fields["topic"].default


@pytest.mark.parametrize("example", blocks("python"))
def test_the_examples_are_python(example: str) -> None:
    ast.parse(example)
