"""Looks at the database now and then: whether it answers, what attribution waits, what recalibration came to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from worker.runtime.instruments import Instruments
from worker.store.errors import StoreError
from worker.store.store import Store

LOOK_EVERY_S = 10.0


@contextmanager
def observed(store: Store, instruments: Instruments, look_every_s: float = LOOK_EVERY_S) -> Iterator[None]:
    """Report readiness of the database, the attribution backlog and recalibrations until the context is left."""
    done = threading.Event()

    def run() -> None:
        _look(store, instruments)
        while not done.wait(look_every_s):
            _look(store, instruments)

    # A look may hang as long as a connection that is lost without a word; nobody need wait for it.
    thread = threading.Thread(target=run, name="observer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def _look(store: Store, instruments: Instruments) -> None:
    try:
        backlog = store.open_backlog()
        outbox = store.outbox_backlogs()
        calibrations = store.calibration_counts()
    except StoreError as error:
        instruments.readiness.set("database", str(error))
        return
    instruments.metrics.attribution_backlog(backlog)
    instruments.metrics.outbox_backlogs(outbox)
    instruments.metrics.calibrations(calibrations)
    instruments.readiness.set("database", None)
