"""Rows of a file of labels: a CSV table, JSON lines, or the JSON export of Label Studio."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from schemas.decoding import Rejected
from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload
from schemas.payload import parse_json
from schemas.reject_reason import RejectReason
from schemas.text import REPLACEMENT
from worker.errors import InputFileError
from worker.review.formats import LabelFormat

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE_BYTES = 4 * 1024 * 1024
# An export is one JSON value, which is read as a whole.
MAX_EXPORT_BYTES = 256 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_DELIMITERS = ",;\t"
# What a spreadsheet writes of a row with nothing in it.
_NOTHING = _DELIMITERS + '"' + " \r\n"
# Excel's own first line: what stands between the cells.
_SEPARATOR = re.compile(r"\s*\"?sep=([^\w\s\"]|\t)\"?[,;\s]*", re.IGNORECASE)
_LOOK_BYTES = 64 * 1024
_REQUIRED = ({"label"}, {"sentence_index"}, {"reviewer", "annotator"}, {"task_id", "interaction_id"})


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row, or what is wrong with it. ``number`` is its first line, or its place in an export, from 1."""

    number: int
    content: JsonObject | Rejected
    size_bytes: int = 0


def read_label_file(path: Path, form: LabelFormat = LabelFormat.AUTO) -> Iterator[FileRow]:
    """Each row in turn, in bounded memory. Raises InputFileError if the file as a whole cannot be used."""
    with _opened(path) as file:
        beginning = file.peek(_LOOK_BYTES)[:_LOOK_BYTES]
        chosen = _guess(beginning) if form is LabelFormat.AUTO else form
        if chosen is LabelFormat.CSV:
            # Bytes that are no UTF-8 become lone surrogates, which the row is refused for.
            with io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text:
                yield from _csv_rows(_Lines(path, text))
        elif chosen is LabelFormat.LABEL_STUDIO and _first_character(beginning) == b"[":
            yield from _export_rows(path, file)
        else:
            yield from _json_lines(file)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """The file as UTF-8: what begins as UTF-16, as some spreadsheets and shells write, is recoded."""
    try:
        with io.BufferedReader(io.FileIO(path), _LOOK_BYTES) as file:
            encoding = _UTF_16.get(file.peek(2)[:2])
            yield file if encoding is None else io.BufferedReader(_Recoded(file, encoding), _LOOK_BYTES)
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error


class _Recoded(io.RawIOBase):
    """UTF-16 as UTF-8, a piece at a time. What is no character becomes U+FFFD."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Give at least a byte, unless the file is at its end."""
        room = memoryview(buffer).cast("B")
        while not self._ready:
            piece = self._file.read(_LOOK_BYTES)
            self._ready = self._decoder.decode(piece, final=not piece).encode()
            if not piece:
                break
        given, self._ready = self._ready[: len(room)], self._ready[len(room) :]
        room[: len(given)] = given
        return len(given)


def _guess(beginning: bytes) -> LabelFormat:
    guesses = {b"{": LabelFormat.JSONL, b"[": LabelFormat.LABEL_STUDIO}
    return guesses.get(_first_character(beginning), LabelFormat.CSV)


def _first_character(beginning: bytes) -> bytes:
    return beginning.removeprefix(_BOM).lstrip()[:1]


# --- JSON ---


def _json_lines(file: BinaryIO) -> Iterator[FileRow]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        size = len(line)
        if size > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
                size += len(line)
            too_large = Rejected(RejectReason.TOO_LARGE, f"the line is longer than {MAX_LINE_BYTES} bytes")
            yield FileRow(number, too_large, size)
        elif line.removeprefix(_BOM).strip():
            yield FileRow(number, _parsed(line), size)


def _parsed(text: bytes) -> JsonObject | Rejected:
    try:
        value = parse_json(text).value
    except UnusablePayload as unusable:
        return Rejected(unusable.reason, unusable.detail)
    if isinstance(value, dict):
        return value
    return Rejected(RejectReason.NOT_AN_OBJECT, "must be an object")


def _export_rows(path: Path, file: BinaryIO) -> Iterator[FileRow]:
    text = file.read(MAX_EXPORT_BYTES + 1)
    if len(text) > MAX_EXPORT_BYTES:
        raise InputFileError(f"{path}: larger than {MAX_EXPORT_BYTES} bytes; make a JSON line of each task")
    try:
        value = parse_json(text).value
    except UnusablePayload as unusable:
        raise InputFileError(f"{path}: {unusable.detail}") from None
    tasks = value if isinstance(value, list) else [value]
    for number, task in enumerate(tasks, 1):
        content = task if isinstance(task, dict) else Rejected(RejectReason.NOT_AN_OBJECT, "must be an object")
        yield FileRow(number, content, len(text) // len(tasks))


# --- CSV ---


def _csv_rows(lines: _Lines) -> Iterator[FileRow]:
    delimiter, head = _head(lines)
    # Those before the head: the reader counts from there.
    passed = lines.number - 1
    reader = csv.reader(chain([head], lines), delimiter=delimiter, strict=True)
    try:
        columns = _columns(lines.path, next(reader, []))
    except csv.Error as error:
        raise InputFileError(f"{lines.path}: the head is no CSV: {error}") from None
    while True:
        number, before = passed + reader.line_num + 1, lines.size_bytes
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield FileRow(number, Rejected(RejectReason.WRONG_SHAPE, f"no CSV: {error}"), lines.size_bytes - before)
            continue
        if cells is None:
            return
        if cells:
            yield FileRow(number, _row(columns, cells), lines.size_bytes - before)


def _head(lines: _Lines) -> tuple[str, str]:
    """The delimiter and the first line that is the table's own: blank lines and that of a separator come before it.

    Without that line it is the delimiter that comes most often in the head: spreadsheets write what the country uses.
    """
    named = None
    for line in lines:
        if not line.strip(_NOTHING):
            continue
        separator = _SEPARATOR.fullmatch(line) if named is None else None
        if separator is None:
            return named or max(_DELIMITERS, key=line.count), line
        named = separator[1]
    return named or _DELIMITERS[0], ""


class _Lines:
    """The lines of a file, which CR, LF or both end."""

    def __init__(self, path: Path, text: TextIO) -> None:
        self.path = path
        self._text = text
        self.number = 0
        self.size_bytes = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        if len(line) > MAX_LINE_BYTES:
            raise InputFileError(f"{self.path}: a line is longer than {MAX_LINE_BYTES} characters; this is no table")
        self.number += 1
        self.size_bytes += len(line.encode(errors="surrogateescape"))
        return line.replace("\x00", REPLACEMENT)


def _columns(path: Path, head: list[str]) -> list[str]:
    """Raises InputFileError if a column is missing without which no row can be read, or if one comes twice."""
    columns = ["_".join(name.strip().casefold().split()) for name in head]
    doubled = [name for name, count in Counter(columns).items() if name and count > 1]
    if doubled:
        raise InputFileError(f"{path}: the head has a column twice: {', '.join(doubled)}")
    missing = [" or ".join(sorted(names)) for names in _REQUIRED if not names & set(columns)]
    if "interaction_id" in columns and not {"app", "task_id"} & set(columns):
        missing.append("app")
    if missing:
        raise InputFileError(f"{path}: the head lacks {', '.join(missing)}")
    return columns


def _row(columns: list[str], cells: list[str]) -> JsonObject | Rejected:
    if len(cells) > len(columns) and any(cell.strip() for cell in cells[len(columns) :]):
        return Rejected(RejectReason.WRONG_SHAPE, f"has {len(cells)} cells under {len(columns)} columns")
    if len(cells) < len(columns):
        return Rejected(RejectReason.WRONG_SHAPE, f"has {len(cells)} cells under {len(columns)} columns")
    return {name: cell for name, cell in zip(columns, cells, strict=False) if name}
