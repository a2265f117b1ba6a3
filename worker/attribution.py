"""Attribution: the full leave-one-out of one low-scoring answer at a time, lowest score first."""

from __future__ import annotations

import structlog

from gasp_core.grounding import Method
from gasp_core.scorer import GroundingScorer
from worker.backoff import pause_s
from worker.store import Store
from worker.store.errors import StoreRejected, StoreUnavailable
from worker.store.jobs import AttributionJob

# A failed job waits this many times longer than a lost connection: what failed once rarely heals in a second.
RETRY_STRETCH = 20.0

log = structlog.get_logger(__name__)


class Attribution:
    """Claims jobs under a lease and settles them."""

    def __init__(
        self,
        *,
        store: Store,
        scorer: GroundingScorer,
        scorer_id: int,
        owner: str,
        lease_s: float,
        max_attempts: int,
    ) -> None:
        self._store = store
        self._scorer = scorer
        self._scorer_id = scorer_id
        self._owner = owner
        self._lease_s = lease_s
        self._max_attempts = max_attempts

    def run_one(self) -> bool:
        """Claim and settle one job. False if none is due, or if the database is away; then ask again later."""
        try:
            job = self._store.claim_job(self._owner, self._scorer_id, self._lease_s, self._max_attempts)
            if job is None:
                return False
            self._settle(job)
        except StoreUnavailable as error:
            # The lease runs out by itself, and the job is then somebody's again.
            log.warning("attribution_postponed", error=str(error))
            return False
        return True

    def _settle(self, job: AttributionJob) -> None:
        try:
            grounding = self._scorer.score([job.exchange], Method.LEAVE_ONE_OUT)[0]
        except Exception as error:  # noqa: BLE001 - a job may fail in any way; its row says how, the worker goes on
            self._settle_failure(job, type(error).__name__)
            return
        try:
            kept = self._store.finish_job(job, grounding)
        except StoreRejected as error:
            self._settle_failure(job, str(error))
            return
        log.info("attributed" if kept else "attribution_lease_lost", job=job.id, attempts=job.attempts)

    def _settle_failure(self, job: AttributionJob, error: str) -> None:
        if job.attempts >= self._max_attempts:
            self._store.fail_job(job, error)
            log.error("attribution_failed", job=job.id, attempts=job.attempts, error=error)
            return
        self._store.retry_job(job, error, RETRY_STRETCH * pause_s(job.attempts))
        log.warning("attribution_retried", job=job.id, attempts=job.attempts, error=error)
