"""Scheduled jobs, in UTC, on APScheduler's own thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from worker.store import Store
from worker.store.errors import StoreUnavailable

REAP_EVERY_S = 10

log = structlog.get_logger(__name__)


@contextmanager
def scheduled_jobs(store: Store) -> Iterator[None]:
    """Run the scheduled jobs until the context is left. Every job may run in several workers at once."""
    scheduler = BackgroundScheduler(timezone=UTC)
    scheduler.add_job(
        reap_leases, "interval", args=[store], seconds=REAP_EVERY_S, id="reap_leases", coalesce=True, max_instances=1
    )
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)


def reap_leases(store: Store) -> None:
    """Give attribution jobs whose worker died back to the queue."""
    try:
        reaped = store.reap_leases()
    except StoreUnavailable as error:
        log.warning("job_postponed", job="reap_leases", error=str(error))
        return
    if reaped:
        log.info("leases_reaped", jobs=reaped)
