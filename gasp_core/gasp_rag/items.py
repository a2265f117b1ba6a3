"""Files of exchanges and of results, as JSON lines or CSV, and the rows in them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gasp_core.errors import InputError
from gasp_core.grounding import Exchange, Passage

CONTEXT_NAMES = ("passages", "contexts", "context")
QUESTION_NAMES = ("query", "question")
SUFFIXES = (".jsonl", ".csv")


@dataclass(frozen=True, slots=True)
class Item:
    """A row as the exchange that it describes. ``in_parts``: its context is a list, whose texts are the chunks."""

    exchange: Exchange
    in_parts: bool


def read_items(path: str | Path) -> list[dict[str, Any]]:
    """Read a ``.jsonl`` or ``.csv`` file; gives its rows as they are, each of which ``parse_item`` understands.

    Raises InputError with the line.
    """
    rows = read_rows(path)
    for line, row in rows:
        try:
            parse_item(row)
        except ValueError as error:
            raise InputError(str(path), line, str(error)) from error
    return [row for _, row in rows]


def parse_item(row: Mapping[str, Any]) -> Item:
    """Take ``answer``, ``context`` (or ``passages``, ``contexts``) and, if there, ``query`` (or ``question``).

    A context is one text or a list of texts. Null stands for an empty text or for no passage at all. Whatever else is
    in the row is let be. Raises ValueError, which does not quote the row, if answer or context is absent or one of
    the three is no text.
    """
    answer = _value(row, ("answer",), empty="")
    if not isinstance(answer, str):
        raise ValueError("needs an 'answer' that is text")  # noqa: TRY004 - a row is a value, and a wrong one
    question = _value(row, QUESTION_NAMES, empty="", absent="")
    if not isinstance(question, str):
        raise ValueError("has a 'query' that is no text")  # noqa: TRY004 - as above
    context = _value(row, CONTEXT_NAMES, empty=())
    texts = [context] if isinstance(context, str) else context
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ValueError("needs a 'context' (text) or 'passages' (a list of texts)")
    passages = tuple(Passage(f"ctx-{number}", text) for number, text in enumerate(texts, 1))
    return Item(Exchange(question, passages, answer), in_parts=not isinstance(context, str))


def _value(row: Mapping[str, Any], names: Sequence[str], *, empty: object, absent: object = None) -> object:
    """The first of these fields that is not null; ``empty`` if all that are there are, ``absent`` if none is there."""
    there = [row[name] for name in names if name in row]
    return next((value for value in there if value is not None), empty if there else absent)


def read_rows(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    """Read the rows of a ``.jsonl`` or ``.csv`` file, each with the line that it ends on. Raises InputError."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(str(path), 0, "the input must be a .jsonl or .csv file")
    try:
        # Line ends are left alone: a quoted CSV field may hold some of its own.
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(file)
                return [(reader.line_num, _csv_row(path, reader.line_num, row)) for row in reader]
            return [(line, _json_row(path, line, text)) for line, text in enumerate(file, 1) if text.strip()]
    except OSError as error:
        raise InputError(str(path), 0, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), 0, "is not UTF-8") from error
    except csv.Error as error:
        raise InputError(str(path), 0, f"is not CSV: {error}") from error


def require_writable(path: str | Path, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise InputError unless ``path`` can be a file with one of these endings, in a folder that exists."""
    if Path(path).is_dir():
        raise InputError(str(path), 0, "is a folder; a file is wanted")
    if Path(path).suffix.lower() not in suffixes:
        raise InputError(str(path), 0, f"the output must be a {' or '.join(suffixes)} file")
    if not Path(path).parent.is_dir():
        raise InputError(str(path), 0, "its folder does not exist")


def write_records(records: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write records to a ``.jsonl`` or ``.csv`` file. Raises InputError if ``require_writable`` does.

    In CSV the columns are the names of all records, in the order in which they first appear; None is an empty cell,
    and a cell that would hold a mapping or a list holds its JSON.
    """
    require_writable(path)
    # Half of a surrogate pair, which JSON can smuggle in, has no UTF-8. Its escape is what JSON wants to see instead.
    with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        if Path(path).suffix.lower() == ".jsonl":
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        elif names := list(dict.fromkeys(name for record in records for name in record)):
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple) else value


def _csv_row(path: Path, line: int, row: dict[str, Any]) -> dict[str, Any]:
    # A comma in a text without quotes: what is read as answer would be a piece of the context.
    if None in row:
        raise InputError(str(path), line, "has more fields than the first line names")
    return row


def _json_row(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), line, "is not JSON") from error
    if not isinstance(row, dict):
        raise InputError(str(path), line, "is not a JSON object")
    return row
