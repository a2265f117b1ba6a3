"""Review tasks into a file, for tools and people without a connection to the topic."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile

import orjson

from schemas.review_task import ReviewTask
from worker.errors import InputFileError
from worker.review.formats import ExportFormat
from worker.review.label_studio import label_studio_tasks
from worker.review.task_message import render

# What is to be filled in stands first, beside what it is about; behind these is a column for each passage. Score and
# flag are left out: whoever sees them agrees with them.
CSV_COLUMNS = ("task_id", "sentence_index", "label", "reviewer", "note", "text", "answer", "question")
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
    """One array, an asked sentence a line."""
    opening = b"[\n"
    for task in chain.from_iterable(map(label_studio_tasks, tasks)):
        yield opening + orjson.dumps(task)
        opening = b",\n"
    yield b"\n]\n" if opening == b",\n" else b"[]\n"


def _jsonl(tasks: Iterable[ReviewTask]) -> Iterator[bytes]:
    for task in tasks:
        yield render(task) + b"\n"


def _csv(tasks: Iterable[ReviewTask]) -> Iterator[bytes]:
    """A row for each asked sentence, with cells for the answers. The texts are guarded.

    How many passages there are is known only behind the last task, so the rows wait in a file without a name.
    """
    with TemporaryFile() as waiting:
        most = 0
        for task in tasks:
            most = max(most, len(task.passages))
            waiting.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in _rows(task))
        head = (*CSV_COLUMNS, *(f"passage_{number}" for number in range(1, most + 1)))
        yield (BOM + _line(head)).encode()
        waiting.seek(0)
        for line in waiting:
            cells = orjson.loads(line)
            yield _line([*cells, *[""] * (len(head) - len(cells))]).encode()


def _rows(task: ReviewTask) -> Iterator[tuple[object, ...]]:
    """In the order of CSV_COLUMNS, and the passages in that of the retriever."""
    shared = tuple(guarded(text) for text in (task.answer, task.question, *(one.text for one in task.passages)))
    for sentence in task.sentences:
        if sentence.asked:
            yield (str(task.task_id), sentence.index, "", "", "", guarded(sentence.text), *shared)


def _line(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_MINIMAL).writerow(cells)
    return line.getvalue()


_WRITERS: dict[ExportFormat, Callable[[Iterable[ReviewTask]], Iterator[bytes]]] = {
    ExportFormat.LABEL_STUDIO: _label_studio,
    ExportFormat.CSV: _csv,
    ExportFormat.JSONL: _jsonl,
}
