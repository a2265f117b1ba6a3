"""Messages as they lie in a file, or in a folder of files: what would be sent, byte for byte."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import orjson

from schemas.headers import Headers
from schemas.reject_reason import RejectReason
from worker.errors import InputFileError

if TYPE_CHECKING:
    import pyarrow

ID_NAMES = ("interaction_id", "id", "request_id", "trace_id")
MAX_WHOLE_BYTES = 256 * 1024 * 1024
PARQUET_ROWS = 256

_LOOK_BYTES = 64 * 1024
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_NUMBERED = re.compile(r"message-(\d+)\.bin")
_HEADERS_FILE = "headers.json"


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``place`` says where it was found, ``problem`` why its bytes cannot be had."""

    place: str
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    key: bytes | None = None
    problem: RejectReason | None = None

    @property
    def sending_key(self) -> bytes:
        """The key to send it with: its own, or its interaction's id, so that revisions of one stay in order.

        A message without either goes where the same message goes every time.
        """
        return self.key if self.key is not None else _key(self.value or b"")


def input_bytes(path: Path) -> int:
    """The bytes that reading ``path`` goes through. Raises InputFileError."""
    try:
        return sum(file.stat().st_size for file in ([path] if path.is_file() else _numbered(path)))
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error


def read_messages(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Message]:
    """The messages of a file or folder, in order.

    Lines of JSON are a message each; a file that is one JSON value over several lines, or no text at all, is one
    message; a Parquet file has one in each row. Any of them may be compressed by gzip. In a folder ``message-1.bin`` …
    are one each, with the headers and keys of ``headers.json``. ``on_bytes`` is told how many bytes were gone through.
    Raises InputFileError if something cannot be read.
    """
    try:
        if path.is_dir():
            yield from _of_folder(path, on_bytes)
        else:
            yield from _of_file(path, on_bytes)
    except (OSError, EOFError) as error:
        raise InputFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _of_file(path: Path, on_bytes: Callable[[int], None]) -> Iterator[Message]:
    with path.open("rb") as file:
        start = file.read(len(_PARQUET))
        file.seek(0)
        if start == _PARQUET:
            yield from _of_parquet(path, on_bytes)
        elif start.startswith(_GZIP):
            with gzip.open(file) as inside:
                yield from _of_text(path.name, cast("BinaryIO", inside), lambda _: None)
            on_bytes(path.stat().st_size)
        else:
            yield from _of_text(path.name, file, on_bytes)


def _of_text(name: str, file: BinaryIO, on_bytes: Callable[[int], None]) -> Iterator[Message]:
    """One message, if the file holds bytes that no text has or is one JSON value over several lines; else lines."""
    start = file.read(_LOOK_BYTES)
    file.seek(0)
    whole = None
    if _CONTROL.search(start):
        whole = _whole(file)
        if whole is None:
            raise InputFileError(f"{name}: no lines of text, and too large for one message")
    elif not _is_json(start.lstrip().partition(b"\n")[0]):
        whole = _whole(file)
        whole = whole if whole is not None and _is_json(whole) else None
    if whole is not None:
        on_bytes(len(whole))
        yield Message(name, whole)
        return
    file.seek(0)
    for number, line in enumerate(file, 1):
        on_bytes(len(line))
        if value := line.strip():
            yield Message(f"{name}:{number}", value)


def _whole(file: BinaryIO) -> bytes | None:
    """All of it, unless it is too large for one message."""
    value = file.read(MAX_WHOLE_BYTES + 1)
    return value if len(value) <= MAX_WHOLE_BYTES else None


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return False
    return True


def _of_parquet(path: Path, on_bytes: Callable[[int], None]) -> Iterator[Message]:
    parquet = _parquet_reader(path)
    total, done = parquet.metadata.num_rows, 0
    size = path.stat().st_size
    for batch in parquet.iter_batches(PARQUET_ROWS):
        rows = batch.to_pylist()
        for row in rows:
            done += 1
            yield Message(f"{path.name}:{done}", orjson.dumps(row, default=_plain, option=orjson.OPT_NON_STR_KEYS))
        on_bytes(size * done // total - size * (done - len(rows)) // total)


def _parquet_reader(path: Path) -> pyarrow.parquet.ParquetFile:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputFileError(f"{path}: Parquet needs pyarrow; install gasp-audit[parquet]") from None
    try:
        return ParquetFile(path)
    except ArrowException as error:
        raise InputFileError(f"{path}: cannot be read as Parquet ({type(error).__name__})") from error


def _plain(value: object) -> object:
    """What JSON has no type for: bytes that are text, decimals, durations."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _numbered(folder: Path) -> list[Path]:
    found = {int(match[1]): file for file in folder.iterdir() if (match := _NUMBERED.fullmatch(file.name))}
    if not found:
        raise InputFileError(f"{folder}: no message-1.bin in it; a folder has its messages in files of this name")
    return [found[number] for number in sorted(found)]


def _of_folder(folder: Path, on_bytes: Callable[[int], None]) -> Iterator[Message]:
    told = _told(folder / _HEADERS_FILE)
    for file in _numbered(folder):
        value = file.read_bytes()
        on_bytes(len(value))
        headers, key = told.get(int(_NUMBERED.fullmatch(file.name)[1]), ((), None))  # type: ignore[index] # by _numbered
        yield Message(file.name, value, tuple(headers), key)


def _told(path: Path) -> dict[int, tuple[Headers, bytes | None]]:
    """Headers and key of each message, as texts in Latin-1."""
    if not path.is_file():
        return {}
    try:
        return {
            entry["message"]: (
                tuple((name, _latin(value)) for name, value in entry.get("headers") or ()),
                _latin(entry.get("key")),
            )
            for entry in json.loads(path.read_bytes())
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputFileError(
            f'{path}: a list is wanted of objects such as {{"message": 1, "headers": [["name", "value"]], "key": null}}'
        ) from error


def _latin(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def _key(value: bytes) -> bytes:
    try:
        row = orjson.loads(value)
    except orjson.JSONDecodeError:
        row = None
    names = ID_NAMES if isinstance(row, dict) else ()
    found = next((row[name] for name in names if isinstance(row.get(name), str | int)), None)
    return hashlib.blake2b(value, digest_size=16).digest() if found is None else str(found).encode(errors="replace")
