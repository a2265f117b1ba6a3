"""Review tasks into a file, for tools and people without a connection to the topic."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from schemas.review_task import ReviewTask, TaskSentence
from worker.errors import InputFileError
from worker.review.formats import ExportFormat
from worker.review.label_studio import label_studio_task
from worker.review.task_message import render

CSV_COLUMNS = (
    "task_id",
    "sentence_index",
    "text",
    "supporting_passage",
    "score",
    "flagged",
    "label",
    "reviewer",
    "note",
)
# Excel takes a file in UTF-8 for one of the machine's own encoding without it.
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
MAX_CELL_CHARS = 32_000
# What makes a spreadsheet take a cell for a formula, in front of it or at its beginning after blanks.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def export_tasks(
    tasks: Iterable[ReviewTask], file_format: ExportFormat, path: Path, on_task: Callable[[int], None] = lambda _: None
) -> int:
    """Write the tasks to a new file while they come; return how many.

    ``on_task`` is told 1 for each. Raises InputFileError if the file is there already, as it may hold somebody's
    labels, or cannot be written.
    """
    counted = _Counted(tasks, on_task)
    try:
        with path.open("xb") as file, _removed_if_unfinished(path):
            file.writelines(_WRITERS[file_format](counted))
    except FileExistsError:
        raise InputFileError(f"{path}: is there already; name a new file") from None
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error
    return counted.tasks


@contextmanager
def _removed_if_unfinished(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula: where it would, an apostrophe stands in front of it.

    Longer text than a cell of Excel holds is cut, since Excel would spread it over the next rows.
    """
    whole = f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
    return whole if len(whole) <= MAX_CELL_CHARS else f"{whole[: MAX_CELL_CHARS - 1]}…"


class _Counted:
    """Counts what passes."""

    def __init__(self, tasks: Iterable[ReviewTask], on_task: Callable[[int], None]) -> None:
        self._source = tasks
        self._on_task = on_task
        self.tasks = 0

    def __iter__(self) -> Iterator[ReviewTask]:
        for task in self._source:
            yield task
            self.tasks += 1
            self._on_task(1)


def _label_studio(tasks: Iterable[ReviewTask]) -> Iterator[bytes]:
    """One array, a task a line."""
    opening = b"[\n"
    for task in tasks:
        yield opening + orjson.dumps(label_studio_task(task))
        opening = b",\n"
    yield b"\n]\n" if opening == b",\n" else b"[]\n"


def _jsonl(tasks: Iterable[ReviewTask]) -> Iterator[bytes]:
    for task in tasks:
        yield render(task) + b"\n"


def _csv(tasks: Iterable[ReviewTask]) -> Iterator[bytes]:
    """A row for each asked sentence, with cells for the answers. The texts are guarded."""
    yield (BOM + _line(CSV_COLUMNS)).encode()
    for task in tasks:
        texts = {passage.position: passage.text for passage in task.passages}
        for sentence in task.sentences:
            if sentence.asked:
                yield _line(_row(task, sentence, texts)).encode()


def _row(task: ReviewTask, sentence: TaskSentence, texts: dict[int, str]) -> tuple[object, ...]:
    """In the order of CSV_COLUMNS. A number of ours is no formula, and keeps its sign."""
    position = sentence.supporting_passage_position
    support = "" if position is None else texts.get(position, "")
    own = (str(task.task_id), sentence.index, guarded(sentence.text), guarded(support))
    return (*own, sentence.score, str(sentence.flagged).lower(), "", "", "")


def _line(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_MINIMAL).writerow(cells)
    return line.getvalue()


_WRITERS: dict[ExportFormat, Callable[[Iterable[ReviewTask]], Iterator[bytes]]] = {
    ExportFormat.LABEL_STUDIO: _label_studio,
    ExportFormat.CSV: _csv,
    ExportFormat.JSONL: _jsonl,
}
