"""Labelled results: the rows of a file that have a label and a score, to measure with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gasp_core.errors import InputError
from gasp_core.gasp_rag.items import read_rows


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels (0 or 1) and scores (finite) of the rows that have both, and how many others were left out.

    A row that has neither counts as one without a label.
    """

    labels: tuple[int, ...]
    scores: tuple[float, ...]
    without_label: int
    without_score: int


def read_labelled(path: str | Path, *, label_column: str, score_column: str) -> Labelled:
    """Read a ``.jsonl`` or ``.csv`` file of results. An empty cell, a null and an absent field are all empty.

    Raises InputError if no row has one of the columns, or with the line of a label that is not 0 or 1 or a score that
    is not a finite number.
    """
    rows = read_rows(path)
    for column in (label_column, score_column):
        if not any(column in row for _, row in rows):
            raise InputError(str(path), 0, f"no row has a column {column!r}")
    labelled = [(line, row) for line, row in rows if not _is_empty(row.get(label_column))]
    complete = [(line, row) for line, row in labelled if not _is_empty(row.get(score_column))]
    return Labelled(
        labels=tuple(_label(path, line, row, label_column) for line, row in complete),
        scores=tuple(_score(path, line, row, score_column) for line, row in complete),
        without_label=len(rows) - len(labelled),
        without_score=len(labelled) - len(complete),
    )


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _label(path: str | Path, line: int, row: Mapping[str, Any], column: str) -> int:
    label = _number(row[column])
    if label not in (0, 1):
        raise InputError(str(path), line, f"the label in {column!r} is not 0 or 1")
    return int(label)


def _score(path: str | Path, line: int, row: Mapping[str, Any], column: str) -> float:
    score = _number(row[column])
    if not math.isfinite(score):
        raise InputError(str(path), line, f"the score in {column!r} is not a finite number")
    return score


def _number(value: object) -> float:
    """What a cell or a JSON value says as a number; NaN if nothing."""
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan
