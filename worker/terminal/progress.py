"""The progress of work that a person waits for, on standard error; a bar is silent where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from gasp_core.evaluation.run import ProgressTracker

T = TypeVar("T")


@contextmanager
def bytes_progress(label: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar over bytes; the value is a function that advances it."""
    with _progress(label, total_bytes, DownloadColumn()) as advance:
        yield advance


@contextmanager
def count_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over things that are counted; the value is a function that advances it."""
    with _progress(label, total, MofNCompleteColumn()) as advance:
        yield advance


@contextmanager
def tracking(description: str) -> Iterator[ProgressTracker]:
    """The value is a function that yields things, of which there are so many, and shows a bar meanwhile."""

    def track(items: Iterable[T], total: int) -> Iterator[T]:
        with count_progress(description, total) as advance:
            for item in items:
                yield item
                advance(1)

    yield track


@contextmanager
def running_count(label: str) -> Iterator[Callable[[int], None]]:
    """A count of things of which nobody knows how many there are; the value is a function that adds to it."""
    with _spinner(label, TextColumn("{task.completed} {task.description}")) as advance:
        yield advance


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Says what is waited for, for how long it has been; where that is no terminal, it says so once in a line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"{label} …", markup=False, highlight=False, soft_wrap=True)
    with _spinner(label, TextColumn("{task.description}", markup=False)):
        yield


@contextmanager
def _spinner(label: str, words: TextColumn) -> Iterator[Callable[[int], None]]:
    """Turns while it is open, with the time that has gone by; silent where standard error is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), words, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda count: progress.advance(task, count)


@contextmanager
def _progress(label: str, total: int, amount: ProgressColumn) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total)
        yield lambda step: progress.advance(task, step)
