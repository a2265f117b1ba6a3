"""Runs the scheduled jobs: APScheduler wakes them, and who enters a due time in Postgres first runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from worker.errors import Stopped, WorkerError
from worker.jobs.due_times import ScheduledJob
from worker.runtime.stop import Stop
from worker.store.errors import StoreError
from worker.store.job_runs import JobRuns

LONGEST_NAP_S = 60.0

log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


@contextmanager
def scheduled_jobs(runs: JobRuns, owner: str, jobs: Sequence[ScheduledJob], stop: Stop) -> Iterator[None]:
    """Run the jobs until the context is left, which asks for the stop and waits for those at work to leave off.

    It waits as long as the stop's grace has it; what does not leave off is abandoned. ``owner`` names this process in
    the rows of the runs. Due times that went by while nobody was there are caught up with one run, that of the latest.
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
        stop.set()
        runner.stop.set()
        scheduler.shutdown(wait=False)
        if not runner.wait_idle(stop.remaining_s()):
            stop.abandon()


class Runner:
    """Looks whether a job is due and runs it if nobody else does.

    ``clock`` gives the time with its zone; by default it is the database's. A worker whose own clock is ahead would
    enter due times of the future, which the others then take for run.

    Jobs may be woken from several threads at once, but each job from one at a time.
    """

    def __init__(self, runs: JobRuns, owner: str, clock: Callable[[], datetime] | None = None) -> None:
        self._runs = runs
        self._owner = owner
        self._clock = clock or runs.now
        self._seen: dict[str, datetime] = {}
        self._at_work = 0
        self._idle = threading.Condition()
        self.stop = threading.Event()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no job is at work, at most ``timeout_s``; whether none is."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._at_work, timeout_s)

    def wake(self, job: ScheduledJob) -> None:
        """Run the job for its latest due time, once. A fault of the database leaves it for the next wake."""
        with self._working():
            self._wake(job)

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._idle:
            self._at_work += 1
        try:
            yield
        finally:
            with self._idle:
                self._at_work -= 1
                self._idle.notify_all()

    def _wake(self, job: ScheduledJob) -> None:
        # Before the database is asked: after the stop nobody closes what this would open.
        if self.stop.is_set():
            return
        try:
            due = job.schedule.latest(self._clock())
            if self._seen.get(job.name) == due:
                return
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
        except (StoreError, WorkerError) as error:
            return True, f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the row says so and the other jobs go on
            return True, type(error).__name__
