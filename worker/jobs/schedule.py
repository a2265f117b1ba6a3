"""Runs the scheduled jobs: APScheduler wakes them, and who enters a due time in Postgres first runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from worker.errors import Stopped
from worker.jobs.due_times import ScheduledJob
from worker.store.errors import StoreError
from worker.store.job_runs import JobRuns

LONGEST_NAP_S = 60.0

log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


@contextmanager
def scheduled_jobs(runs: JobRuns, owner: str, jobs: Sequence[ScheduledJob]) -> Iterator[None]:
    """Run the jobs until the context is left, which waits for those at work to leave off.

    ``owner`` names this process in the rows of the runs. Due times that went by while nobody was there are caught up
    with one run, that of the latest.
    """
    runner = Runner(runs, owner)
    scheduler = BackgroundScheduler(timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None})
    for job in jobs:
        # Twice per period, so that a wake that is a little late meets every due time all the same.
        nap_s = min(job.schedule.period_s / 2, LONGEST_NAP_S)
        scheduler.add_job(runner.wake, "interval", args=[job], seconds=nap_s, id=job.name, next_run_time=utc_now())
    scheduler.start()
    try:
        yield
    finally:
        runner.stop.set()
        scheduler.shutdown(wait=True)


class Runner:
    """Looks whether a job is due and runs it if nobody else does. ``clock`` gives the time with its zone.

    Jobs may be woken from several threads at once, but each job from one at a time.
    """

    def __init__(self, runs: JobRuns, owner: str, clock: Callable[[], datetime] = utc_now) -> None:
        self._runs = runs
        self._owner = owner
        self._clock = clock
        self._seen: dict[str, datetime] = {}
        self.stop = threading.Event()

    def wake(self, job: ScheduledJob) -> None:
        """Run the job for its latest due time, once. A fault of the database leaves it for the next wake."""
        due = job.schedule.latest(self._clock())
        if self._seen.get(job.name) == due or self.stop.is_set():
            return
        try:
            ours = self._runs.claim(job.name, due, self._owner)
        except StoreError as error:
            log.warning("job_postponed", job=job.name, error=str(error))
            return
        self._seen[job.name] = due
        if ours:
            self._run(job, due)

    def _run(self, job: ScheduledJob, due: datetime) -> None:
        started = time.monotonic()
        failed, detail = self._outcome(job)
        seconds = round(time.monotonic() - started, 3)
        try:
            self._runs.end(job.name, due, failed=failed, detail=detail or None)
        except StoreError as error:
            log.warning("job_end_not_booked", job=job.name, error=str(error))
        if failed:
            log.error("job_failed", job=job.name, error=detail, seconds=seconds)
        elif detail:
            log.info("job_done", job=job.name, did=detail, seconds=seconds)

    def _outcome(self, job: ScheduledJob) -> tuple[bool, str]:
        """Whether the job failed, and what it did or why."""
        try:
            return False, job.work(self.stop)
        except Stopped:
            return True, "stopped"
        except StoreError as error:
            return True, f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the row says so and the other jobs go on
            return True, type(error).__name__
