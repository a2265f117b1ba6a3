"""Replay: the lines of a file into the topic, as they are. What is wrong with a line is for the audit to say."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from worker.broker.sink import RecordSink
from worker.errors import InputFileError

FLUSH_EVERY = 500
FLUSH_TIMEOUT_S = 60.0
ID_NAMES = ("interaction_id", "id", "request_id", "trace_id")


def replay_file(
    path: Path,
    sink: RecordSink,
    topic: str,
    *,
    limit: int | None = None,
    on_line: Callable[[int], None] = lambda _: None,
) -> int:
    """Send each non-empty line of a JSON-lines file; gives how many were sent once the broker has them all.

    ``on_line`` is told the bytes of each line. Raises InputFileError if the file cannot be read.
    """
    sent = 0
    for line in _lines(path):
        on_line(len(line))
        value = line.strip()
        if not value:
            continue
        if limit is not None and sent >= limit:
            break
        sink.send(topic, value, key=_key(value))
        sent += 1
        if sent % FLUSH_EVERY == 0:
            sink.flush(FLUSH_TIMEOUT_S)
    sink.flush(FLUSH_TIMEOUT_S)
    return sent


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error


def _key(value: bytes) -> bytes:
    """The interaction's id, so that revisions of one interaction stay in one partition and in order.

    A line without an id goes where the same line goes every time.
    """
    try:
        row = orjson.loads(value)
    except orjson.JSONDecodeError:
        row = None
    names = ID_NAMES if isinstance(row, dict) else ()
    found = next((row[name] for name in names if isinstance(row.get(name), str | int)), None)
    return hashlib.blake2b(value, digest_size=16).digest() if found is None else str(found).encode(errors="replace")
