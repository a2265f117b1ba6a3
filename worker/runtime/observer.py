"""Looks at the database now and then: whether it answers, what attribution waits, what recalibration came to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from worker.runtime.telemetry import Telemetry
from worker.store.attribution_jobs import AttributionJobs
from worker.store.calibration_runs import CalibrationRuns
from worker.store.errors import StoreError
from worker.store.outbox import Outbox
from worker.store.traces import Traces

LOOK_EVERY_S = 10.0


@contextmanager
def observed(
    telemetry: Telemetry,
    *,
    jobs: AttributionJobs,
    outbox: Outbox,
    runs: CalibrationRuns,
    traces: Traces,
    look_every_s: float = LOOK_EVERY_S,
) -> Iterator[None]:
    """Report readiness of the database, what waits in it, and recalibrations until the context is left."""
    done = threading.Event()

    def run() -> None:
        _look(telemetry, jobs, outbox, runs, traces)
        while not done.wait(look_every_s):
            _look(telemetry, jobs, outbox, runs, traces)

    # A look may hang as long as a connection that is lost without a word; nobody need wait for it.
    thread = threading.Thread(target=run, name="observer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def _look(telemetry: Telemetry, jobs: AttributionJobs, outbox: Outbox, runs: CalibrationRuns, traces: Traces) -> None:
    try:
        backlog, backlogs, calibrations = jobs.open_backlog(), outbox.open_backlogs(), runs.counts()
        open_traces = traces.open()
    except StoreError as error:
        telemetry.readiness.set("database", str(error))
        return
    telemetry.metrics.attribution_backlog(backlog)
    telemetry.metrics.outbox_backlogs(backlogs)
    telemetry.metrics.calibrations(calibrations)
    telemetry.metrics.open_traces(open_traces)
    telemetry.readiness.set("database", None)
