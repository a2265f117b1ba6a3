"""`gasp-worker` with a fault of the process itself, as lives of a forked process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from torch import nn

from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.scorer import GroundingScorer
from tests.forked import run_command
from tests.soak.scorer import SoakScorer
from worker import service
from worker.broker.source import RecordSource
from worker.rules.records import Record
from worker.settings.settings import Settings

# Several of these are longer than the least GASP_WORK_TIMEOUT_S.
BLOCK_S = 1.5
FATAL = "ends whoever reads it"


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


def slow_worker(*arguments: str) -> None:
    """Each block of the model takes over a second, as on a machine that is too small for it."""
    load = service.load_scorer

    def slow(settings: Settings) -> GroundingScorer:
        scorer = load(settings)
        for module in scorer._model.network.modules():
            for block in module if isinstance(module, nn.ModuleList) else ():
                block.register_forward_pre_hook(lambda *_: time.sleep(BLOCK_S))
        return scorer

    service.load_scorer = slow
    run_command(*arguments)


class DoomedScorer(SoakScorer):
    """Ends the process, as the kernel does when memory is short, with more than two answers or with a certain one."""

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score, or end."""
        if len(exchanges) > 2 or any(FATAL in exchange.answer for exchange in exchanges):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(exchanges, method)


def doomed_worker(*arguments: str) -> None:
    """Too much for its machine."""
    service.load_scorer = lambda _: DoomedScorer(0.0)  # type: ignore[assignment,return-value]  # an AnswerScorer, too
    run_command(*arguments)
