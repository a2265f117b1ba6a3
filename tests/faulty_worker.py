"""`gasp-worker` with a fault of the process itself: ``python -m tests.faulty_worker FAULT run``.

``wedged-poll``: the third poll never returns. ``endless-batch``: the first batch is never scored.
"""

from __future__ import annotations

import sys
import threading

from gasp_core.grounding import AnswerGrounding
from gasp_core.scorer import GroundingScorer
from worker.broker.source import RecordSource
from worker.cli import main
from worker.records import Record


def wedge_the_poll() -> None:
    """Let the thread that polls hang for ever."""
    polls = 0
    poll = RecordSource.poll

    def wedged(self: RecordSource, timeout_s: float, max_records: int | None = None) -> list[Record]:
        nonlocal polls
        polls += 1
        if polls > 2:
            threading.Event().wait()
        return poll(self, timeout_s, max_records)

    RecordSource.poll = wedged  # type: ignore[method-assign]


def score_for_ever() -> None:
    """Let the thread that scores hang for ever."""

    def endless(*_: object) -> list[AnswerGrounding]:
        print("scoring", file=sys.stderr, flush=True)
        threading.Event().wait()
        return []

    GroundingScorer.score = endless  # type: ignore[assignment,method-assign]


FAULTS = {"wedged-poll": wedge_the_poll, "endless-batch": score_for_ever}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    main()
