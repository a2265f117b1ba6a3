"""Attribution jobs: one for each verdict that waits for leave-one-out, lowest score first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import BigInteger, ColumnElement, Connection, Row, Table, any_, func, literal, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from gasp_core.grounding import AnswerGrounding, Exchange
from worker.store import leases
from worker.store.interactions import stored_exchanges
from worker.store.repository import Repository, reads, writes
from worker.store.review_tasks import REPLACED, RETIRED
from worker.store.tables import attribution_jobs, verdicts
from worker.store.verdicts import write_attributions

_jobs = attribution_jobs.c


@dataclass(frozen=True, slots=True)
class AttributionJob(leases.LeasedJob):
    """A claimed job. ``threshold_id`` is the version the verdict was given under."""

    table: ClassVar[Table] = attribution_jobs

    verdict_id: int
    threshold_id: int | None
    exchange: Exchange


class AttributionJobs(Repository):
    """The queue of verdicts that wait for leave-one-out."""

    @writes
    def claim(
        self, connection: Connection, owner: str, scorer_id: int, lease_s: float, max_attempts: int
    ) -> AttributionJob | None:
        """Lease the scorer's job with the lowest priority value that is due, or return None.

        A job that has been started ``max_attempts`` times without an end (it may have killed its workers) fails for
        good.
        """
        candidates = select(_jobs.id).where(_jobs.scorer_id == scorer_id).order_by(_jobs.priority, _jobs.id)
        claimed = leases.claim(
            connection, attribution_jobs, candidates, owner=owner, lease_s=lease_s, max_attempts=max_attempts
        )
        return _load(connection, owner, claimed[0]) if claimed else None

    @writes
    def finish(self, connection: Connection, job: AttributionJob, grounding: AnswerGrounding) -> bool:
        """Store the attributions and close the job. False, with nothing written, if the lease was lost."""
        if not leases.finish(connection, job):
            return False
        write_attributions(connection, {job.verdict_id: grounding})
        return True

    @reads
    def open_backlog(self, connection: Connection) -> leases.Backlog:
        """How many jobs wait, run and have failed; quick, however many are done."""
        return leases.open_backlog(connection, attribution_jobs)

    @reads
    def backlog(self, connection: Connection) -> leases.Backlog:
        """How many jobs wait, run, have failed and are done."""
        return leases.backlog(connection, attribution_jobs)


def close_replaced(connection: Connection, scorer_id: int, interaction_pks: Sequence[int]) -> None:
    """Close the waiting jobs of the verdicts that other scorers gave these answers."""
    judged = verdicts.c
    theirs = judged.interaction_pk == any_(literal(list(interaction_pks), ARRAY(BigInteger)))
    replaced = select(judged.id).where(theirs, judged.scorer_id != scorer_id)
    _close(connection, _jobs.verdict_id.in_(replaced), REPLACED)


def close_retired(connection: Connection, at_work: Sequence[int], limit: int) -> int:
    """Close at most ``limit`` waiting jobs of scorers that are not at work; return how many."""
    retired = select(_jobs.id).where(_jobs.state == leases.WAITING, _jobs.scorer_id.not_in(at_work)).limit(limit)
    return _close(connection, _jobs.id.in_(retired), RETIRED)


def _close(connection: Connection, chosen: ColumnElement[bool], reason: str) -> int:
    close = update(attribution_jobs).where(_jobs.state == leases.WAITING, chosen)
    closed = connection.execute(close.values(state="failed", finished_at=func.now(), last_error=reason))
    return closed.rowcount


def _load(connection: Connection, owner: str, claimed: Row[Any]) -> AttributionJob:
    """Read what is to be scored again, as it was scored before."""
    judged = verdicts.c
    found = connection.execute(
        select(judged.threshold_id, judged.interaction_pk).where(judged.id == claimed.verdict_id)
    ).one()
    exchange = stored_exchanges(connection, [found.interaction_pk])[found.interaction_pk]
    return AttributionJob(claimed.id, owner, claimed.attempts, claimed.verdict_id, found.threshold_id, exchange)
