"""Small files of labelled answers, in the form that the instrument reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PASSAGES = ["The museum opens at nine.", "Tickets cost twelve euros."]


def labelled_row(number: int, *, invented: bool) -> dict[str, Any]:
    """An answer of two sentences; the second one is invented and labelled so, or is not."""
    second = "A café waits upstairs." if invented else "Tickets cost twelve euros."
    answer = f"The museum opens at nine. {second}"
    start = answer.index(second)
    label = {"start": start, "end": len(answer), "type": "baseless", "text": second}
    return {
        "id": f"answer-{number}",
        "dataset": "museum",
        "source_id": f"source-{number // 2}",
        "query": f"When does museum {number} open?",
        "passages": PASSAGES,
        "answer": answer,
        "labels": [label] if invented else [],
        "model": "generator-a" if number % 3 else "generator-b",
    }


def labelled_rows(count: int) -> list[dict[str, Any]]:
    """Answers of two sources each, every second one with an invention."""
    return [labelled_row(number, invented=number % 2 == 0) for number in range(count)]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines; gives the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
