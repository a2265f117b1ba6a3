"""Progress bars for work that a person waits for; on standard error, and silent where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bytes_progress(label: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar over bytes; the value is a function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total_bytes)
        yield lambda size: progress.advance(task, size)
