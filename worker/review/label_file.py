"""Rows of a file of labels: a CSV table, JSON lines, or the JSON export of Label Studio."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from schemas.decoding import Rejected
from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload
from schemas.payload import parse_json
from schemas.reject_reason import RejectReason
from schemas.text import REPLACEMENT
from worker.errors import InputFileError
from worker.review.formats import LabelFormat

MAX_LINE_BYTES = 4 * 1024 * 1024
# An export is one JSON value, which is read as a whole.
MAX_EXPORT_BYTES = 256 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DELIMITERS = ",;\t"
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
        if beginning.startswith(_UTF_16):
            raise InputFileError(f"{path}: is UTF-16; save it as CSV UTF-8")
        chosen = _guess(beginning) if form is LabelFormat.AUTO else form
        if chosen is LabelFormat.CSV:
            yield from _csv_rows(path, file, beginning)
        elif chosen is LabelFormat.LABEL_STUDIO and _first_character(beginning) == b"[":
            yield from _export_rows(path, file)
        else:
            yield from _json_lines(file)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader[io.FileIO]]:
    try:
        with io.BufferedReader(io.FileIO(path), _LOOK_BYTES) as file:
            yield file
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error


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


def _csv_rows(path: Path, file: BinaryIO, beginning: bytes) -> Iterator[FileRow]:
    lines = _Lines(path, file)
    reader = csv.reader(lines, delimiter=_delimiter(beginning), strict=True)
    columns = _columns(path, next(reader, []))
    while True:
        number, before = reader.line_num + 1, lines.size_bytes
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield FileRow(number, Rejected(RejectReason.WRONG_SHAPE, f"no CSV: {error}"), lines.size_bytes - before)
            continue
        if cells is None:
            return
        if cells:
            yield FileRow(number, _row(columns, cells), lines.size_bytes - before)


class _Lines:
    """The lines of a file as text. Bytes that are no UTF-8 become lone surrogates, which the row is refused for."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self.size_bytes = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MAX_LINE_BYTES + 1)
        if not line:
            raise StopIteration
        if len(line) > MAX_LINE_BYTES:
            raise InputFileError(f"{self._path}: a line is longer than {MAX_LINE_BYTES} bytes; this is no table")
        if self.size_bytes == 0:
            line = line.removeprefix(_BOM)
        self.size_bytes += len(line)
        return line.decode(errors="surrogateescape").replace("\x00", REPLACEMENT)


def _delimiter(beginning: bytes) -> str:
    """That which comes most often in the head: spreadsheets write what the country uses."""
    head = beginning.splitlines()[0].decode(errors="replace") if beginning else ""
    return max(_DELIMITERS, key=head.count)


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
