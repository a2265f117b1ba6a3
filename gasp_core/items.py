"""Files of exchanges and of results, as JSON lines or CSV."""

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
    """One exchange of a file with the row that it came from."""

    exchange: Exchange
    row: Mapping[str, Any]


def read_items(path: str) -> list[Item]:
    """Read a ``.jsonl`` or ``.csv`` file; each row holds ``answer``, ``context`` (or ``passages``) and ``query``.

    The context is one string or, in JSON, a list of strings. Raises InputError with the line.
    """
    return [_item(path, line, row) for line, row in _rows(path)]


def require_writable(path: str) -> None:
    """Raise InputError unless ``path`` is a ``.jsonl`` or ``.csv`` file in a folder that exists."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(path, 0, "the output must be a .jsonl or .csv file")
    if not Path(path).parent.is_dir():
        raise InputError(path, 0, "its folder does not exist")


def write_records(records: Sequence[Mapping[str, Any]], path: str) -> None:
    """Write records to a ``.jsonl`` or ``.csv`` file. Raises InputError if ``require_writable`` does."""
    require_writable(path)
    if Path(path).suffix.lower() == ".jsonl":
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        Path(path).write_text("".join(lines), encoding="utf-8")
    else:
        names = list(dict.fromkeys(name for record in records for name in record))
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(records)


def _rows(path: str) -> list[tuple[int, Mapping[str, Any]]]:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(path, 0, "the input must be a .jsonl or .csv file")
    try:
        # Line ends are left alone: a quoted CSV field may hold some of its own.
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            if suffix == ".csv":
                reader = csv.DictReader(file)
                return [(reader.line_num, row) for row in reader]
            return [(line, _json_row(path, line, text)) for line, text in enumerate(file, 1) if text.strip()]
    except OSError as error:
        raise InputError(path, 0, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise InputError(path, 0, "is not UTF-8") from error
    except csv.Error as error:
        raise InputError(path, 0, f"is not CSV: {error}") from error


def _json_row(path: str, line: int, text: str) -> Mapping[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(path, line, "is not JSON") from error
    if not isinstance(row, dict):
        raise InputError(path, line, "is not a JSON object")
    return row


def _item(path: str, line: int, row: Mapping[str, Any]) -> Item:
    answer = row.get("answer")
    if not isinstance(answer, str):
        raise InputError(path, line, "needs an 'answer' that is text")
    question = next((row[name] for name in QUESTION_NAMES if isinstance(row.get(name), str)), "")
    texts = next((row[name] for name in CONTEXT_NAMES if row.get(name) is not None), None)
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(path, line, "needs a 'context' (text) or 'passages' (a list of texts)")
    passages = tuple(Passage(f"ctx-{number}", text) for number, text in enumerate(texts, 1))
    return Item(Exchange(question, passages, answer), row)
