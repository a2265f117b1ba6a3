"""Looks at the database now and then: whether it answers, what attribution waits, what recalibration came to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from worker.runtime.telemetry import Telemetry
from worker.store.errors import StoreError
from worker.store.store import Store

LOOK_EVERY_S = 10.0


@contextmanager
def observed(store: Store, telemetry: Telemetry, look_every_s: float = LOOK_EVERY_S) -> Iterator[None]:
    """Report readiness of the database, the attribution backlog and recalibrations until the context is left."""
    done = threading.Event()

    def run() -> None:
        _look(store, telemetry)
        while not done.wait(look_every_s):
            _look(store, telemetry)

    # A look may hang as long as a connection that is lost without a word; nobody need wait for it.
    thread = threading.Thread(target=run, name="observer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def _look(store: Store, telemetry: Telemetry) -> None:
    try:
        backlog = store.open_backlog()
        outbox = store.outbox_backlogs()
        calibrations = store.calibration_counts()
    except StoreError as error:
        telemetry.readiness.set("database", str(error))
        return
    telemetry.metrics.attribution_backlog(backlog)
    telemetry.metrics.outbox_backlogs(outbox)
    telemetry.metrics.calibrations(calibrations)
    telemetry.readiness.set("database", None)
