"""Re-scoring: stored answers that lack this scorer's verdict, a small batch at a time, while nothing else is to do."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from gasp_core.grounding import AnswerGrounding
from worker.backoff import pause_s
from worker.errors import ScorerBroken, ScorerUnavailable
from worker.judge import judge, threshold_for
from worker.scoring import Scoring, Unscorable
from worker.store import RescoreJob, Store
from worker.store.errors import StoreRejected, StoreUnavailable
from worker.store.revisions import Judged

# Inline work that comes meanwhile waits for a whole batch.
BATCH_ANSWERS = 8

# As with attribution: what failed once rarely heals in a second.
RETRY_STRETCH = 20.0

log = structlog.get_logger(__name__)


class Rescoring:
    """Claims jobs under a lease, scores them in one call, and stores their verdicts in one transaction."""

    def __init__(
        self,
        *,
        store: Store,
        scoring: Scoring,
        scorer_id: int,
        owner: str,
        lease_s: float,
        max_attempts: int,
        batch_answers: int = BATCH_ANSWERS,
    ) -> None:
        self._store = store
        self._scoring = scoring
        self._scorer_id = scorer_id
        self._owner = owner
        self._lease_s = lease_s
        self._max_attempts = max_attempts
        self._batch_answers = batch_answers
        self._jobs: tuple[RescoreJob, ...] = ()

    def run_batch(self) -> bool:
        """Claim and settle a batch. False if no job is due, or if database or device are away; then ask again later.

        Raises ScorerBroken if the model fails on every exchange.
        """
        try:
            self._jobs = self._claim()
            if scored := self._score(self._jobs):
                self._finish(self._judge(scored))
        except (StoreUnavailable, ScorerUnavailable) as error:
            # Leases that are still held run out by themselves, and the jobs are then somebody's again.
            log.warning("rescoring_postponed", error=str(error))
            return False
        found, self._jobs = bool(self._jobs), ()
        return found

    def release(self) -> None:
        """Give the jobs at hand back, as if they had never been claimed: they are not going to be finished."""
        try:
            for job in self._jobs:
                self._store.release_job(job)
        except StoreUnavailable as error:
            log.warning("rescoring_postponed", error=str(error))

    def _claim(self) -> tuple[RescoreJob, ...]:
        return self._store.claim_rescoring(
            self._owner,
            self._scorer_id,
            limit=self._batch_answers,
            lease_s=self._lease_s,
            max_attempts=self._max_attempts,
        )

    def _score(self, jobs: Sequence[RescoreJob]) -> list[tuple[RescoreJob, AnswerGrounding]]:
        """Those that can be scored; the others are settled as failures."""
        try:
            found = self._scoring.score([job.exchange for job in jobs])
        except (ScorerBroken, ScorerUnavailable):
            self.release()
            raise
        scored = []
        for job, grounding in zip(jobs, found, strict=True):
            if isinstance(grounding, Unscorable):
                self._settle_failure(job, grounding.error)
            else:
                scored.append((job, grounding))
        return scored

    def _judge(self, scored: Sequence[tuple[RescoreJob, AnswerGrounding]]) -> list[tuple[RescoreJob, Judged]]:
        thresholds = self._store.active_thresholds(self._scorer_id)
        return [
            (job, Judged(grounding, judge(grounding, threshold_for(job.app, thresholds)))) for job, grounding in scored
        ]

    def _finish(self, judged: Sequence[tuple[RescoreJob, Judged]]) -> None:
        try:
            stored = self._store.finish_rescoring(self._scorer_id, judged)
        except StoreRejected as error:
            if len(judged) == 1:
                self._settle_failure(judged[0][0], str(error))
                return
            # One of them is more than the database can hold. Alone, each shows which it is.
            log.warning("rescoring_batch_rejected", error=str(error), jobs=len(judged))
            for one in judged:
                self._finish([one])
            return
        log.info("rescored", jobs=len(judged), verdicts=stored)

    def _settle_failure(self, job: RescoreJob, error: str) -> None:
        if job.attempts >= self._max_attempts:
            self._store.fail_job(job, error)
            log.error("rescoring_failed", job=job.id, attempts=job.attempts, error=error)
            return
        self._store.retry_job(job, error, RETRY_STRETCH * pause_s(job.attempts))
        log.warning("rescoring_retried", job=job.id, attempts=job.attempts, error=error)
