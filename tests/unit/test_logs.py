"""Logs are JSON lines of facts."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from worker.runtime.logs import configure_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    yield io.StringIO()
    structlog.reset_defaults()
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def test_events_and_warnings_of_libraries_are_json_lines(stream: io.StringIO) -> None:
    configure_logs("info", stream)
    structlog.get_logger("a").info("settled", messages=3)
    structlog.get_logger("a").debug("polled")
    logging.getLogger("some.library").warning("careful")
    logging.getLogger("some.library").info("chatter")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [("settled", "info"), ("library_log", "warning")]
    assert lines[0]["messages"] == 3
    assert lines[0]["timestamp"].endswith("Z")
    assert (lines[1]["logger"], lines[1]["message"]) == ("some.library", "careful")
