"""Attribution: the full leave-one-out of one low-scoring answer at a time, lowest score first."""

from __future__ import annotations

import structlog

from worker.ingest.scoring import Scoring, Unscorable
from worker.jobs.leased import LeasePolicy, RetriedWork
from worker.runtime.metrics import Metrics, Stage
from worker.store.attribution_jobs import AttributionJob, AttributionJobs
from worker.store.errors import StoreRejected
from worker.store.leases import Leases

log = structlog.get_logger(__name__)


class AttributionWork(RetriedWork[AttributionJob]):
    """Leased work on attribution jobs, one a run."""

    def __init__(
        self,
        *,
        queue: AttributionJobs,
        leases: Leases,
        scoring: Scoring,
        scorer_id: int,
        policy: LeasePolicy,
        metrics: Metrics,
    ) -> None:
        super().__init__(leases=leases, scorer_id=scorer_id, policy=policy)
        self._queue = queue
        self._scoring = scoring
        self._metrics = metrics

    def _claim(self) -> tuple[AttributionJob, ...]:
        policy = self._policy
        job = self._queue.claim(policy.owner, self._scorer_id, policy.lease_s, policy.max_attempts)
        return () if job is None else (job,)

    def _work_on(self, jobs: tuple[AttributionJob, ...]) -> None:
        for job in jobs:
            with self._metrics.stage(Stage.ATTRIBUTION):
                self._attribute(job)

    def _attribute(self, job: AttributionJob) -> None:
        grounding = self._scoring.attribute(job.exchange)
        if isinstance(grounding, Unscorable):
            self._fail_or_retry(job, grounding.error)
            return
        try:
            kept = self._queue.finish(job, grounding)
        except StoreRejected as error:
            self._fail_or_retry(job, str(error))
            return
        log.info("attributed" if kept else "attribution_lease_lost", job=job.id, attempts=job.attempts)

    def _log_postponed(self, **facts: object) -> None:
        log.warning("attribution_postponed", **facts)

    def _log_retried(self, **facts: object) -> None:
        log.warning("attribution_retried", **facts)

    def _log_failed(self, **facts: object) -> None:
        log.error("attribution_failed", **facts)
