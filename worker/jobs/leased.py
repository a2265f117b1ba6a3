"""Leased work: jobs that a worker claims until a time, finishes or gives back; a subclass says of what kind."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from worker.errors import ScorerBroken, ScorerUnavailable
from worker.runtime.retry import pause_s
from worker.store.errors import StoreError, StoreUnavailable
from worker.store.leases import LeasedJob, Leases

# A failed job waits this many times longer than a lost connection: what failed once rarely heals in a second.
RETRY_STRETCH = 20.0
# So that a renewal or two may fail.
RENEWALS_A_LEASE = 4

log = structlog.get_logger(__name__)

J = TypeVar("J", bound=LeasedJob)


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Who claims a job, for how many seconds, and how often it is tried in all."""

    owner: str
    lease_s: float
    max_attempts: int


class LeasedWork(ABC, Generic[J]):
    """Claims jobs under its policy and works on them. Their leases are renewed for as long as that takes.

    A job that fails because the device is away or the model is broken is given back at once, with the attempts that it
    had.
    """

    def __init__(self, *, leases: Leases, scorer_id: int, policy: LeasePolicy) -> None:
        self._leases = leases
        self._scorer_id = scorer_id
        self._policy = policy
        self._jobs: tuple[J, ...] = ()

    def run(self) -> bool:
        """Claim jobs and work on them. False if none is due, or if database or device are away; then ask again later.

        Raises ScorerBroken if the model fails on every exchange.
        """
        try:
            self._jobs = jobs = self._claim()
            with self._renewed(jobs):
                self._work_or_release(jobs)
        except (StoreUnavailable, ScorerUnavailable) as error:
            # Leases that are still held run out by themselves, and the jobs are then somebody's again.
            self._log_postponed(error=str(error))
            return False
        self._jobs = ()
        return bool(jobs)

    def release(self) -> None:
        """Give the jobs at hand back, as if they had never been claimed: they are not going to be finished."""
        try:
            for job in self._jobs:
                self._leases.release(job)
        except StoreUnavailable as error:
            self._log_postponed(error=str(error))

    @contextmanager
    def _renewed(self, jobs: tuple[J, ...]) -> Iterator[None]:
        """Renew the leases until the context is left: from a thread, since the work may be one long call.

        A process that hangs keeps its leases no longer than the watchdog lets it live, and one that is frozen renews
        nothing.
        """
        done = threading.Event()
        keeper = threading.Thread(target=self._renew_until, args=(jobs, done), name="leases", daemon=True)
        if jobs:
            keeper.start()
        try:
            yield
        finally:
            done.set()

    def _renew_until(self, jobs: tuple[J, ...], done: threading.Event) -> None:
        held = list(jobs)
        while held and not done.wait(self._policy.lease_s / RENEWALS_A_LEASE):
            try:
                held = [job for job in held if self._leases.renew(job, self._policy.lease_s)]
            except StoreError as error:
                # The next try may succeed before the lease has run out.
                log.warning("lease_not_renewed", jobs=[job.id for job in held], error=str(error))

    def _work_or_release(self, jobs: tuple[J, ...]) -> None:
        try:
            self._work_on(jobs)
        except (ScorerBroken, ScorerUnavailable):
            self.release()
            raise

    @abstractmethod
    def _claim(self) -> tuple[J, ...]:
        """Lease the jobs that are to be worked on together; none if none is due."""

    @abstractmethod
    def _work_on(self, jobs: tuple[J, ...]) -> None:
        """Score the jobs and store what was found, or see to their failure."""

    @abstractmethod
    def _log_postponed(self, **facts: object) -> None: ...


class RetriedWork(LeasedWork[J]):
    """Leased work whose jobs are tried again later when they fail for a reason of their own, until the last attempt."""

    def _fail_or_retry(self, job: J, error: str) -> None:
        """Put the job back for another attempt, or fail it for good if this was the last one."""
        if job.attempts >= self._policy.max_attempts:
            self._leases.fail(job, error)
            self._log_failed(job=job.id, attempts=job.attempts, error=error)
            return
        self._leases.retry(job, error, RETRY_STRETCH * pause_s(job.attempts))
        self._log_retried(job=job.id, attempts=job.attempts, error=error)

    @abstractmethod
    def _log_retried(self, **facts: object) -> None: ...

    @abstractmethod
    def _log_failed(self, **facts: object) -> None: ...
