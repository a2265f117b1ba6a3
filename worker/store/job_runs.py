"""Which due time of a job was run, by whom, and how it ended. Who enters it runs the job; nobody else does."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from worker.store.repository import Repository, reads, writes
from worker.store.tables import job_runs

# No job takes that long: its worker ended, or could not say how it went.
_LOST_AFTER = timedelta(days=1)
_MAX_DETAIL_CHARS = 1000

_runs = job_runs.c


class JobRuns(Repository):
    """Which due times were run."""

    @reads
    def now(self, connection: Connection) -> datetime:
        """The database's time, which is the same for all workers."""
        time: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return time

    @writes
    def claim(self, connection: Connection, job: str, scheduled_for: datetime, owner: str) -> bool:
        """Enter the due time as running. False if somebody has entered it already, whatever became of it."""
        entered = insert(job_runs).values(job=job, scheduled_for=scheduled_for, owner=owner).on_conflict_do_nothing()
        return connection.execute(entered.returning(_runs.job)).one_or_none() is not None

    @writes
    def end(
        self, connection: Connection, job: str, scheduled_for: datetime, *, failed: bool, detail: str | None
    ) -> None:
        """Book how a run ended; ``detail`` must hold no message text."""
        running = update(job_runs).where(
            _runs.job == job, _runs.scheduled_for == scheduled_for, _runs.outcome == "running"
        )
        short = None if detail is None else detail.replace("\0", "")[:_MAX_DETAIL_CHARS]
        connection.execute(
            running.values(outcome="failed" if failed else "done", detail=short, finished_at=func.clock_timestamp())
        )

    @writes
    def prune(self, connection: Connection, keep_days: int) -> int:
        """Forget runs that were due before ``keep_days`` ago, but never a job's newest; return how many.

        A run of which no end was booked within a day is closed as failed.
        """
        lost = update(job_runs).where(_runs.outcome == "running", _runs.started_at < func.now() - _LOST_AFTER)
        connection.execute(lost.values(outcome="failed", detail="no end was booked", finished_at=func.now()))
        later = job_runs.alias("later")
        followed = (
            select(later.c.job).where(later.c.job == _runs.job, later.c.scheduled_for > _runs.scheduled_for).exists()
        )
        old = _runs.scheduled_for < func.now() - timedelta(days=keep_days)
        return connection.execute(delete(job_runs).where(old, followed)).rowcount
