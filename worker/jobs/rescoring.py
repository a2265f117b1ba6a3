"""Re-scoring: stored answers that lack this scorer's verdict, a small batch at a time, while nothing else is to do."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from gasp_core.detectors.detector import Detector
from gasp_core.grounding import AnswerGrounding
from worker.ingest.scoring import Scoring, Unscorable
from worker.ingest.verdict import verdict_of
from worker.jobs.leased import LeasePolicy, RetriedWork
from worker.rules.verdict import threshold_for
from worker.store.errors import StoreRejected
from worker.store.leases import Leases
from worker.store.rescore_jobs import RescoreJob, RescoreJobs
from worker.store.revisions import Judged
from worker.store.thresholds import Thresholds

# Inline work that comes meanwhile waits for a whole batch.
BATCH_ANSWERS = 8

log = structlog.get_logger(__name__)


class RescoringWork(RetriedWork[RescoreJob]):
    """Leased work on re-scoring jobs: scores a batch in one call, and stores its verdicts in one transaction."""

    def __init__(
        self,
        *,
        queue: RescoreJobs,
        leases: Leases,
        thresholds: Thresholds,
        scoring: Scoring,
        scorer_id: int,
        detector: Detector,
        policy: LeasePolicy,
        batch_answers: int = BATCH_ANSWERS,
    ) -> None:
        super().__init__(leases=leases, scorer_id=scorer_id, policy=policy)
        self._queue = queue
        self._thresholds = thresholds
        self._scoring = scoring
        self._detector = detector
        self._batch_answers = batch_answers

    def _claim(self) -> tuple[RescoreJob, ...]:
        policy = self._policy
        return self._queue.claim(
            policy.owner,
            self._scorer_id,
            limit=self._batch_answers,
            lease_s=policy.lease_s,
            max_attempts=policy.max_attempts,
        )

    def _work_on(self, jobs: tuple[RescoreJob, ...]) -> None:
        if scored := self._score(jobs):
            self._finish(self._judge(scored))

    def _score(self, jobs: Sequence[RescoreJob]) -> list[tuple[RescoreJob, AnswerGrounding]]:
        """Those that can be scored; the others are failed or tried again."""
        found = self._scoring.score([job.exchange for job in jobs])
        scored = []
        for job, grounding in zip(jobs, found, strict=True):
            if isinstance(grounding, Unscorable):
                self._fail_or_retry(job, grounding.error)
            else:
                scored.append((job, grounding))
        return scored

    def _judge(self, scored: Sequence[tuple[RescoreJob, AnswerGrounding]]) -> list[tuple[RescoreJob, Judged]]:
        thresholds = self._thresholds.in_force(self._scorer_id, sorted({job.app for job, _ in scored}))
        return [
            (
                job,
                Judged(
                    grounding, verdict_of(job.exchange, grounding, self._detector, threshold_for(job.app, thresholds))
                ),
            )
            for job, grounding in scored
        ]

    def _finish(self, judged: Sequence[tuple[RescoreJob, Judged]]) -> None:
        try:
            stored = self._queue.finish(self._scorer_id, judged)
        except StoreRejected as error:
            if len(judged) == 1:
                self._fail_or_retry(judged[0][0], str(error))
                return
            # One of them is more than the database can hold. Alone, each shows which it is.
            log.warning("rescoring_batch_rejected", error=str(error), jobs=len(judged))
            for one in judged:
                self._finish([one])
            return
        log.info("rescored", jobs=len(judged), verdicts=stored)

    def _log_postponed(self, **facts: object) -> None:
        log.warning("rescoring_postponed", **facts)

    def _log_retried(self, **facts: object) -> None:
        log.warning("rescoring_retried", **facts)

    def _log_failed(self, **facts: object) -> None:
        log.error("rescoring_failed", **facts)
