"""`gasp-worker` with a fault of the process itself, as lives of a forked process."""

from __future__ import annotations

import sys
import threading

from gasp_core.grounding import AnswerGrounding
from gasp_core.scorer import GroundingScorer
from tests.forked import run_command
from worker.broker.source import RecordSource
from worker.rules.records import Record


def wedged_worker(*arguments: str) -> None:
    """The third poll never returns."""
    polls = 0
    poll = RecordSource.poll

    def wedged(self: RecordSource, timeout_s: float, max_records: int | None = None) -> list[Record]:
        nonlocal polls
        polls += 1
        if polls > 2:
            threading.Event().wait()
        return poll(self, timeout_s, max_records)

    RecordSource.poll = wedged  # type: ignore[method-assign]
    run_command(*arguments)


def endless_worker(*arguments: str) -> None:
    """The first batch is never scored."""

    def endless(*_: object) -> list[AnswerGrounding]:
        print("scoring", file=sys.stderr, flush=True)
        threading.Event().wait()
        return []

    GroundingScorer.score = endless  # type: ignore[assignment,method-assign]
    run_command(*arguments)
