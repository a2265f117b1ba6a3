"""A progress bar over a scan; on standard error, and silent where that is no terminal."""

from __future__ import annotations

from collections.abc import Generator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from worker.broker.scan import TopicScan
from worker.broker.unreadable import Unreadable
from worker.rules.records import Record


def with_bar(label: str, scan: TopicScan, *, shown: bool = True) -> Generator[Record | Unreadable, None, None]:
    """What the scan gives, while a bar counts the offsets. Close it: until then the terminal is the bar's."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as progress:
        task = progress.add_task(label, total=scan.offsets)
        for item in scan:
            yield item
            progress.advance(task, item.next_offset - item.offset if isinstance(item, Unreadable) else 1)
