"""Queues in tables: how a job is claimed, kept, given back and closed. All of them share this.

::

    waiting ──claim──> running ──finish──> done
       ^                  │ ├───fail────> failed
       └──retry, release, reap (claiming a job that has used up its attempts fails it, too)

A claim is a lease: owner and attempt number together say whose it is, so that a worker whose lease was reaped and
given to another, or to itself, can no longer write.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    case,
    func,
    literal_column,
    null,
    select,
    true,
    update,
)

from worker.store.repository import Repository, writes
from worker.store.tables import attribution_jobs, outbox, rescore_jobs, result_exports, second_opinions, traces

# Written into the statements: a plan that is made for any value cannot use the indexes that hold these states alone.
WAITING: ColumnElement[str] = literal_column("'waiting'")
RUNNING: ColumnElement[str] = literal_column("'running'")

QUEUES = (attribution_jobs, rescore_jobs, outbox, second_opinions, result_exports, traces)
"""The tables whose rows are leased."""

_MAX_ERROR_CHARS = 1000


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A claimed row of ``table``. ``attempts`` counts this attempt."""

    table: ClassVar[Table]

    id: int
    owner: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many jobs of a table are in each state. ``waiting`` includes those that back off."""

    waiting: int = 0
    running: int = 0
    failed: int = 0
    done: int = 0


class Leases(Repository):
    """What becomes of a lease, whatever the job."""

    @writes
    def renew(self, connection: Connection, job: LeasedJob, lease_s: float) -> bool:
        """Let the lease of a job that is worked on run for ``lease_s`` seconds from now. False if it was lost."""
        kept = update(job.table).where(is_ours(job)).values(leased_until=_from_now(lease_s))
        return connection.execute(kept).rowcount == 1

    @writes
    def retry(self, connection: Connection, job: LeasedJob, error: str, run_after_s: float) -> bool:
        """Put the job back, to be tried again after ``run_after_s`` seconds. False if the lease was lost."""
        return _leave(connection, job, state="waiting", run_after=_from_now(run_after_s), last_error=_cut(error))

    @writes
    def release(self, connection: Connection, job: LeasedJob) -> bool:
        """Put the job back as if it had not been claimed: what kept it from being done has nothing to do with it.

        False if the lease was lost.
        """
        return _leave(connection, job, state="waiting", attempts=job.attempts - 1)

    @writes
    def fail(self, connection: Connection, job: LeasedJob, error: str) -> bool:
        """Record the final failure; ``error`` must hold no message text. False if the lease was lost."""
        return fail(connection, job, error)

    @writes
    def reap(self, connection: Connection) -> int:
        """Put jobs whose lease has run out back in their queues, with their attempts; return how many."""
        return sum(reap(connection, table) for table in QUEUES)


def claim(
    connection: Connection,
    table: Table,
    candidates: Select[tuple[int]],
    *,
    owner: str,
    lease_s: float,
    max_attempts: int,
    limit: int = 1,
) -> list[Row[Any]]:
    """Lease the first ``limit`` of the candidates that are due and that no other worker is taking at this moment.

    ``candidates`` selects ids in the order of claiming. The rows are the table's, in any order; none if none is due.
    A job that has been started ``max_attempts`` times without an end (it may have killed its workers) fails for good.
    """
    jobs = table.c
    due = candidates.where(jobs.state == WAITING, jobs.run_after <= func.now()).limit(limit)
    # As a common table expression, because a subquery may be run, and would then lock others, once for every row.
    first = due.with_for_update(of=table, skip_locked=True).cte("due")
    used_up = jobs.attempts >= max_attempts
    take = (
        update(table)
        .where(jobs.id == first.c.id)
        .values(
            state=case((used_up, "failed"), else_="running"),
            attempts=case((used_up, jobs.attempts), else_=jobs.attempts + 1),
            lease_owner=case((used_up, null()), else_=owner),
            leased_until=case((used_up, null()), else_=_from_now(lease_s)),
            finished_at=case((used_up, func.now()), else_=null()),
        )
        .returning(table)
    )
    while taken := connection.execute(take).all():
        if running := [row for row in taken if row.state == "running"]:
            return running
    return []


def finish(connection: Connection, job: LeasedJob) -> bool:
    """Close the job. False if the lease was lost; then nothing that belongs to the job may be written."""
    return _leave(connection, job, state="done", finished_at=func.now())


def fail(connection: Connection, job: LeasedJob, error: str) -> bool:
    """Record the final failure. False if the lease was lost."""
    return _leave(connection, job, state="failed", finished_at=func.now(), last_error=_cut(error))


def reap(connection: Connection, table: Table) -> int:
    """Put jobs whose lease has run out back in the queue, with their attempts; return how many."""
    jobs = table.c
    expired = (
        select(jobs.id).where(jobs.state == RUNNING, jobs.leased_until < func.now()).with_for_update(skip_locked=True)
    )
    back = update(table).where(jobs.id.in_(expired))
    values = {"state": "waiting", "lease_owner": None, "leased_until": None, "last_error": "lease expired"}
    return connection.execute(back.values(**values)).rowcount


def backlog(connection: Connection, table: Table) -> Backlog:
    """Count the jobs by state. Reads the whole table."""
    return _counted(connection, table, true())


def open_backlog(connection: Connection, table: Table) -> Backlog:
    """Count the jobs that are not done, by the index that holds them alone; ``done`` is 0."""
    # A literal, so that PostgreSQL sees that the index's condition is met.
    return _counted(connection, table, table.c.state != literal_column("'done'"))


def open_backlogs(connection: Connection, named: ColumnElement[str]) -> dict[str, Backlog]:
    """Count the jobs that are not done by a column of their table, too; ``done`` is 0."""
    jobs = named.table.c
    # A literal, so that PostgreSQL sees that the index's condition is met.
    is_open = jobs.state != literal_column("'done'")
    counted = select(named.label("name"), jobs.state, func.count().label("jobs")).where(is_open)
    states: dict[str, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(counted.group_by(named, jobs.state)):
        states[row.name][row.state] = row.jobs
    return {name: Backlog(**counts) for name, counts in states.items()}


def is_ours(job: LeasedJob) -> ColumnElement[bool]:
    """Whether the row is leased by whoever claimed the job, in that attempt."""
    jobs = job.table.c
    return and_(
        jobs.id == job.id,
        jobs.state == "running",
        jobs.lease_owner == job.owner,
        jobs.attempts == job.attempts,
    )


def _counted(connection: Connection, table: Table, wanted: ColumnElement[bool]) -> Backlog:
    counted = select(table.c.state, func.count().label("jobs")).where(wanted).group_by(table.c.state)
    return Backlog(**{row.state: row.jobs for row in connection.execute(counted)})


def _leave(connection: Connection, job: LeasedJob, **values: object) -> bool:
    """Give up the lease with a new state, if it is still ours."""
    leave = update(job.table).where(is_ours(job)).values(lease_owner=None, leased_until=None, **values)
    return connection.execute(leave).rowcount == 1


def _from_now(seconds: float) -> ColumnElement[datetime]:
    return func.now() + timedelta(seconds=seconds)


def _cut(error: str) -> str:
    return error.replace("\0", "")[:_MAX_ERROR_CHARS]
