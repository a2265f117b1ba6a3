"""Worker processes that end as by kill -9 just before or just after one of their steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from tests.forked import Forked
from tests.soak.scorer import SoakScorer
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.cli import stop_on_signals
from worker.runtime.logs import configure_logs
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.settings import read_settings
from worker.store.calibration_runs import CalibrationRuns
from worker.store.label_settlements import LabelSettlements
from worker.store.outbox import Outbox
from worker.store.settlements import Settlements
from worker.store.traces import Traces

STORE = (Settlements, LabelSettlements, Outbox, CalibrationRuns, Traces)
PARTS: dict[str, type[Any]] = {part.__name__: part for part in (*STORE, RecordSink, RecordSource)}


@contextmanager
def dying_worker(
    environment: Mapping[str, str], log: Path, roles: Sequence[Role], step: str | None = None
) -> Iterator[Forked]:
    """A worker with a scorer that needs no model; killed at the end if it still runs.

    ``step`` is where it dies by itself, such as ``before Settlements.settle`` (None: nowhere).
    """
    process = Forked(_work, (tuple(roles), step), environment, log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _work(roles: Sequence[Role], step: str | None) -> None:
    if step is not None:
        _doom(step)
    settings = read_settings()
    configure_logs(settings.log_level)
    run_service(settings, set(roles), stop_on_signals(), load=lambda _: SoakScorer(0.0))


def _doom(step: str) -> None:
    when, place = step.split()
    part, name = place.split(".")
    original = getattr(PARTS[part], name)

    @wraps(original)
    def doomed(*arguments: Any, **options: Any) -> Any:
        result = None if when == "before" else original(*arguments, **options)
        # A step that did nothing, such as a claim of nothing, is not the one.
        if when == "before" or result not in (None, (), [], 0):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(PARTS[part], name, doomed)
