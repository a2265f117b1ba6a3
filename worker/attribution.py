"""Attribution: the full leave-one-out of one low-scoring answer at a time, lowest score first."""

from __future__ import annotations

import structlog

from worker.backoff import pause_s
from worker.errors import ScorerUnavailable
from worker.metrics import Metrics, Stage
from worker.scoring import Scoring, Unscorable
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
        scoring: Scoring,
        scorer_id: int,
        owner: str,
        lease_s: float,
        max_attempts: int,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._scoring = scoring
        self._scorer_id = scorer_id
        self._owner = owner
        self._lease_s = lease_s
        self._max_attempts = max_attempts
        self._metrics = metrics
        self._job: AttributionJob | None = None

    def run_one(self) -> bool:
        """Claim and settle one job. False if none is due, or if the database or the device is away; then ask later.

        Raises ScorerBroken.
        """
        try:
            self._job = self._store.claim_job(self._owner, self._scorer_id, self._lease_s, self._max_attempts)
            if self._job is None:
                return False
            with self._metrics.stage(Stage.ATTRIBUTION):
                self._settle(self._job)
        except (StoreUnavailable, ScorerUnavailable) as error:
            # The lease runs out by itself, and the job is then somebody's again.
            log.warning("attribution_postponed", error=str(error))
            return False
        self._job = None
        return True

    def release(self) -> None:
        """Give the job at hand back, as if it had never been claimed: the process ends without finishing it."""
        if self._job is None:
            return
        try:
            self._store.release_job(self._job)
        except StoreUnavailable as error:
            log.warning("attribution_postponed", error=str(error))

    def _settle(self, job: AttributionJob) -> None:
        grounding = self._scoring.attribute(job.exchange)
        if isinstance(grounding, Unscorable):
            self._settle_failure(job, grounding.error)
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
