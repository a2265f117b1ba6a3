"""Attribution jobs: a queue in a table.

::

    waiting ──claim──> running ──finish──> done
       ^                  │ ├───fail────> failed
       └──retry, reap─────┘ (claiming a job that has used up its attempts fails it, too)

A claim is a lease: owner and attempt number together say whose it is, so that a worker whose lease was reaped and
given to another, or to itself, can no longer write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, null, select, update

from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from worker.store.tables import attribution_jobs, interactions, passages, verdicts
from worker.store.verdicts import write_attributions

_MAX_ERROR_CHARS = 1000

_jobs = attribution_jobs.c


@dataclass(frozen=True, slots=True)
class AttributionJob:
    """A claimed job. ``attempts`` counts this one; ``threshold_id`` is the version the verdict was given under."""

    id: int
    owner: str
    attempts: int
    verdict_id: int
    threshold_id: int | None
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many attribution jobs are in each state. ``waiting`` includes those that back off."""

    waiting: int = 0
    running: int = 0
    failed: int = 0
    done: int = 0


def claim_job(
    connection: Connection, owner: str, scorer_id: int, *, lease_s: float, max_attempts: int
) -> AttributionJob | None:
    """Lease the scorer's job with the lowest priority value that is due, or return None.

    A job that has been started ``max_attempts`` times without an end (it may have killed its workers) fails for good.
    """
    while (claimed := _claim(connection, owner, scorer_id, lease_s, max_attempts)) is not None:
        if claimed.state == "running":
            return _load(connection, owner, claimed)
    return None


def finish_job(connection: Connection, job: AttributionJob, grounding: AnswerGrounding) -> bool:
    """Store the attributions and close the job. False, with nothing written, if the lease was lost."""
    if not _leave(connection, job, state="done", finished_at=func.now()):
        return False
    write_attributions(connection, {job.verdict_id: grounding})
    return True


def retry_job(connection: Connection, job: AttributionJob, error: str, run_after_s: float) -> bool:
    """Put the job back for another attempt in ``run_after_s`` seconds at the earliest. False if the lease was lost."""
    return _leave(connection, job, state="waiting", run_after=_from_now(run_after_s), last_error=_cut(error))


def fail_job(connection: Connection, job: AttributionJob, error: str) -> bool:
    """Record the final failure. False if the lease was lost."""
    return _leave(connection, job, state="failed", finished_at=func.now(), last_error=_cut(error))


def reap_leases(connection: Connection) -> int:
    """Put jobs whose lease has run out back in the queue, with their attempts; return how many."""
    expired = (
        select(_jobs.id)
        .where(_jobs.state == "running", _jobs.leased_until < func.now())
        .with_for_update(skip_locked=True)
    )
    back = update(attribution_jobs).where(_jobs.id.in_(expired))
    values = {"state": "waiting", "lease_owner": None, "leased_until": None, "last_error": "lease expired"}
    return connection.execute(back.values(**values)).rowcount


def backlog(connection: Connection) -> Backlog:
    """Count the jobs by state."""
    counted = select(_jobs.state, func.count().label("jobs")).group_by(_jobs.state)
    return Backlog(**{row.state: row.jobs for row in connection.execute(counted)})


def _claim(
    connection: Connection, owner: str, scorer_id: int, lease_s: float, max_attempts: int
) -> Row[int, str, int, int] | None:
    """Take the first due job that no other worker is taking at this moment."""
    first = (
        select(_jobs.id)
        .join(verdicts, verdicts.c.id == _jobs.verdict_id)
        .where(_jobs.state == "waiting", _jobs.run_after <= func.now(), verdicts.c.scorer_id == scorer_id)
        .order_by(_jobs.priority, _jobs.id)
        .limit(1)
        .with_for_update(of=attribution_jobs, skip_locked=True)
        .scalar_subquery()
    )
    used_up = _jobs.attempts >= max_attempts
    take = (
        update(attribution_jobs)
        .where(_jobs.id == first)
        .values(
            state=case((used_up, "failed"), else_="running"),
            attempts=case((used_up, _jobs.attempts), else_=_jobs.attempts + 1),
            lease_owner=case((used_up, null()), else_=owner),
            leased_until=case((used_up, null()), else_=_from_now(lease_s)),
            finished_at=case((used_up, func.now()), else_=null()),
        )
        .returning(_jobs.id, _jobs.state, _jobs.attempts, _jobs.verdict_id)
    )
    return connection.execute(take).one_or_none()


def _load(connection: Connection, owner: str, claimed: Row[int, str, int, int]) -> AttributionJob:
    """Read what is to be scored again, as it was scored before."""
    logged = interactions.c
    found = connection.execute(
        select(verdicts.c.threshold_id, logged.id, logged.question, logged.answer)
        .join(interactions, logged.id == verdicts.c.interaction_pk)
        .where(verdicts.c.id == claimed.verdict_id)
    ).one()
    retrieved = connection.execute(
        select(passages.c.passage_id, passages.c.text)
        .where(passages.c.interaction_pk == found.id)
        .order_by(passages.c.position)
    )
    exchange = Exchange(found.question, tuple(Passage(row.passage_id, row.text) for row in retrieved), found.answer)
    return AttributionJob(claimed.id, owner, claimed.attempts, claimed.verdict_id, found.threshold_id, exchange)


def _leave(connection: Connection, job: AttributionJob, **values: object) -> bool:
    """Give up the lease with a new state, if it is still ours."""
    leave = update(attribution_jobs).where(_is_ours(job)).values(lease_owner=None, leased_until=None, **values)
    return connection.execute(leave).rowcount == 1


def _is_ours(job: AttributionJob) -> ColumnElement[bool]:
    return and_(
        _jobs.id == job.id,
        _jobs.state == "running",
        _jobs.lease_owner == job.owner,
        _jobs.attempts == job.attempts,
    )


def _from_now(seconds: float) -> ColumnElement[datetime]:
    return func.now() + timedelta(seconds=seconds)


def _cut(error: str) -> str:
    return error.replace("\0", "")[:_MAX_ERROR_CHARS]
