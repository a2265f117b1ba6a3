"""Asking for second opinions: flagged sentences of attributed answers, lowest score first, a few a day."""

from __future__ import annotations

import time

import structlog

from worker.jobs.leased import LeasePolicy, RetriedWork
from worker.rules.opinion import Opinion, OpinionFailed, SecondOpinion
from worker.runtime.metrics import Metrics
from worker.store.leases import Leases
from worker.store.opinion_jobs import OpinionJob, OpinionJobs

# How often sentences are looked for that nobody has queued, and how many are queued at once.
QUEUE_EVERY_S = 10.0
QUEUE_SENTENCES = 200

log = structlog.get_logger(__name__)


class OpinionWork(RetriedWork[OpinionJob]):
    """Leased work on sentences that wait for an opinion of ``second``, one a run. ``daily`` bounds all verifiers."""

    def __init__(
        self,
        *,
        queue: OpinionJobs,
        leases: Leases,
        scorer_id: int,
        policy: LeasePolicy,
        second: SecondOpinion,
        daily: int,
        metrics: Metrics,
    ) -> None:
        super().__init__(leases=leases, scorer_id=scorer_id, policy=policy)
        self._queue = queue
        self._second = second
        self._daily = daily
        self._metrics = metrics
        self._queue_again_at = 0.0
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many attempts have failed since the last opinion."""
        return self._failures

    def _claim(self) -> tuple[OpinionJob, ...]:
        self._look_for_more()
        policy = self._policy
        job = self._queue.claim(policy.owner, self._second.verifier, policy.lease_s, policy.max_attempts)
        return () if job is None else (job,)

    def _look_for_more(self) -> None:
        if time.monotonic() < self._queue_again_at:
            return
        queued = self._queue.queue(self._scorer_id, self._second.verifier, daily=self._daily, limit=QUEUE_SENTENCES)
        self._queue_again_at = time.monotonic() + QUEUE_EVERY_S
        if queued:
            log.info("second_opinions_queued", sentences=queued)

    def _work_on(self, jobs: tuple[OpinionJob, ...]) -> None:
        for job in jobs:
            try:
                opinion = self._second.judge(job.question, job.passages, job.answer, job.sentence)
            except OpinionFailed as failure:
                self._fail(job, str(failure))
            except Exception as error:  # noqa: BLE001 - whatever a sentence does to a verifier must not stop the worker
                self._fail(job, type(error).__name__)
            else:
                self._finish(job, opinion)

    def _finish(self, job: OpinionJob, opinion: Opinion) -> None:
        self._failures = 0
        kept = self._queue.finish(job, opinion)
        if kept:
            self._metrics.second_opinion(opinion.label)
        log.info("second_opinion" if kept else "second_opinion_lease_lost", job=job.id, attempts=job.attempts)

    def _fail(self, job: OpinionJob, reason: str) -> None:
        self._failures += 1
        self._fail_or_retry(job, reason)

    def _log_postponed(self, **facts: object) -> None:
        log.warning("second_opinion_postponed", **facts)

    def _log_retried(self, **facts: object) -> None:
        log.warning("second_opinion_retried", **facts)

    def _log_failed(self, **facts: object) -> None:
        self._metrics.second_opinion(None)
        log.error("second_opinion_failed", **facts)
