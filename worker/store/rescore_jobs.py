"""Re-scoring jobs: one for each interaction that waits for the verdict of another scorer, newest first.

Whoever writes here takes the jobs before the interactions, as retention does when it deletes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    any_,
    delete,
    exists,
    func,
    literal,
    null,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from gasp_core.grounding import Exchange
from gasp_core.text.marks import as_shown
from worker.store import leases
from worker.store.interactions import stored_exchanges, stored_marks
from worker.store.replacement import replace_verdicts
from worker.store.repository import Repository, reads, writes
from worker.store.revisions import Judged
from worker.store.tables import INTERACTION_TIME, interactions, rescore_jobs, verdicts
from worker.store.verdicts import write_verdicts

_OPEN = ("waiting", "running")

_jobs = rescore_jobs.c
_logged = interactions.c
_NEWEST_FIRST = (INTERACTION_TIME.desc(), _logged.id.desc())


@dataclass(frozen=True, slots=True)
class History:
    """Current interactions from ``since`` up to but not including ``until`` (None: no end), of one app or of all."""

    since: datetime
    until: datetime | None = None
    app: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryCursor:
    """How far back a walk through history has come: the time and primary key of the last interaction."""

    time: datetime
    interaction_pk: int


@dataclass(frozen=True, slots=True)
class Portion:
    """A step of that walk: how many were queued, had their verdict, were queued before; its end, None at the last."""

    queued: int
    judged: int
    queued_before: int
    end: HistoryCursor | None


@dataclass(frozen=True, slots=True)
class RescoreJob(leases.LeasedJob):
    """A claimed job. ``answer_marks`` are what the exchange's answer is without."""

    table: ClassVar[Table] = rescore_jobs

    interaction_pk: int
    app: str
    exchange: Exchange
    answer_marks: tuple[tuple[int, int], ...] = ()


class RescoreJobs(Repository):
    """The queue of interactions that wait for another scorer's verdict."""

    @writes
    def queue(
        self,
        connection: Connection,
        scorer_id: int,
        history: History,
        before: HistoryCursor | None,
        *,
        limit: int,
        only_count: bool = False,
    ) -> Portion:
        """Queue those of the next ``limit`` interactions that lack the scorer's verdict, newest first.

        A job that has failed is queued again, with new attempts. ``only_count`` writes nothing.
        """
        found = connection.execute(_step(scorer_id, history, before, limit)).all()
        lacking = [row.id for row in found if not row.has_verdict and not row.is_queued]
        queued = len(lacking) if only_count else _enqueue(connection, scorer_id, lacking)
        judged = sum(row.has_verdict for row in found)
        end = HistoryCursor(found[-1].time, found[-1].id) if len(found) == limit else None
        return Portion(queued, judged, len(found) - judged - queued, end)

    @writes
    def cancel(self, connection: Connection, scorer_id: int, *, limit: int) -> int:
        """Take back at most ``limit`` of the scorer's waiting jobs; return how many it were."""
        waiting = select(_jobs.id).where(_jobs.scorer_id == scorer_id, _jobs.state == leases.WAITING).limit(limit)
        taken = waiting.with_for_update(skip_locked=True).cte("taken")
        return connection.execute(delete(rescore_jobs).where(_jobs.id == taken.c.id)).rowcount

    @writes
    def claim(
        self, connection: Connection, owner: str, scorer_id: int, *, limit: int, lease_s: float, max_attempts: int
    ) -> tuple[RescoreJob, ...]:
        """Lease the scorer's next ``limit`` jobs in the order of queueing; none if none is due.

        A job that was tried before comes after the fresh ones and alone, so that one that ends its worker takes no
        other with it. A job that is not wanted any more, because its interaction has the verdict or a newer revision,
        is closed; one that was started ``max_attempts`` times without an end is failed.
        """
        mine = select(_jobs.id).where(_jobs.scorer_id == scorer_id).order_by(_jobs.id)
        terms: dict[str, Any] = {"owner": owner, "lease_s": lease_s, "max_attempts": max_attempts}
        for candidates, most in ((mine.where(_jobs.attempts == 0), limit), (mine.where(_jobs.attempts > 0), 1)):
            while claimed := leases.claim(connection, rescore_jobs, candidates, **terms, limit=most):
                if jobs := _load_wanted(connection, owner, scorer_id, claimed):
                    return jobs
        return ()

    @writes
    def finish(self, connection: Connection, scorer_id: int, judged: Sequence[tuple[RescoreJob, Judged]]) -> int:
        """Store the verdicts and close the jobs; return how many verdicts were stored.

        Nothing is written for a job whose lease was lost or whose interaction is gone. A verdict that is there already
        stays. Raises StoreConflict if another transaction stores one of them at this moment.
        """
        in_order = sorted(judged, key=lambda item: item[0].id)
        ours = {job.interaction_pk: _as_stored(job, found) for job, found in in_order if leases.finish(connection, job)}
        lacking = ours.keys() - _judged_already(connection, scorer_id, ours)
        write_verdicts(connection, scorer_id, {interaction_pk: ours[interaction_pk] for interaction_pk in lacking})
        replace_verdicts(connection, scorer_id, sorted(lacking))
        return len(lacking)

    @reads
    def backlog(self, connection: Connection) -> leases.Backlog:
        """How many jobs wait, run, have failed and are done."""
        return leases.backlog(connection, rescore_jobs)


def _step(scorer_id: int, history: History, before: HistoryCursor | None, limit: int) -> Select[Any]:
    """The next interactions, newest first, and what each has already."""
    queued = and_(_jobs.interaction_pk == _logged.id, _jobs.scorer_id == scorer_id, _jobs.state.in_(_OPEN))
    step = select(
        _logged.id,
        INTERACTION_TIME.label("time"),
        _has_verdict(scorer_id).label("has_verdict"),
        exists().where(queued).label("is_queued"),
    ).where(_logged.is_current, history.since <= INTERACTION_TIME)
    if history.until is not None:
        step = step.where(history.until > INTERACTION_TIME)
    if history.app is not None:
        step = step.where(_logged.app == history.app)
    if before is not None:
        step = step.where(tuple_(INTERACTION_TIME, _logged.id) < tuple_(before.time, before.interaction_pk))
    return step.order_by(*_NEWEST_FIRST).limit(limit)


def _has_verdict(scorer_id: int) -> ColumnElement[bool]:
    return exists().where(verdicts.c.interaction_pk == _logged.id, verdicts.c.scorer_id == scorer_id)


def _enqueue(connection: Connection, scorer_id: int, pks: Sequence[int]) -> int:
    """Open the closed jobs of these interactions again and add those that there are not; return how many of both."""
    wanted = any_(literal(list(pks), ARRAY(BigInteger)))
    closed = and_(_jobs.scorer_id == scorer_id, _jobs.interaction_pk == wanted, _jobs.state.not_in(_OPEN))
    anew = {"state": "waiting", "attempts": 0, "run_after": func.now(), "last_error": null(), "finished_at": null()}
    opened = connection.execute(update(rescore_jobs).where(closed).values(**anew)).rowcount
    # Locked, so that an interaction that retention deletes at this moment is left out.
    theirs = select(_logged.id, literal(scorer_id)).where(_logged.id == wanted).order_by(*_NEWEST_FIRST)
    add = insert(rescore_jobs).from_select(
        ["interaction_pk", "scorer_id"], theirs.with_for_update(read=True, key_share=True)
    )
    # An INSERT tells its count only when it is asked to.
    added = connection.execute(add.on_conflict_do_nothing(), execution_options={"preserve_rowcount": True}).rowcount
    return opened + added


def _load_wanted(
    connection: Connection, owner: str, scorer_id: int, claimed: Sequence[Row[Any]]
) -> tuple[RescoreJob, ...]:
    """The claimed jobs with what is to be scored; those that nobody wants any more are closed instead."""
    pks = [row.interaction_pk for row in claimed]
    exchanges = stored_exchanges(connection, pks)
    wanted = and_(_logged.is_current, ~_has_verdict(scorer_id))
    logged = {
        row.id: row
        for row in connection.execute(
            select(_logged.id, _logged.app, _logged.answer_marks, wanted.label("wanted")).where(_logged.id.in_(pks))
        )
    }
    jobs = []
    for row in sorted(claimed, key=lambda row: int(row.id)):
        pk = row.interaction_pk
        one = logged[pk]
        marks = stored_marks(one.answer_marks)
        job = RescoreJob(row.id, owner, row.attempts, pk, one.app, exchanges[pk], marks)
        if one.wanted:
            jobs.append(job)
        else:
            leases.finish(connection, job)
    return tuple(jobs)


def _as_stored(job: RescoreJob, found: Judged) -> Judged:
    return replace(found, grounding=as_shown(found.grounding, job.answer_marks))


def _judged_already(connection: Connection, scorer_id: int, found: Mapping[int, Judged]) -> set[int]:
    judged = select(verdicts.c.interaction_pk).where(
        verdicts.c.scorer_id == scorer_id, verdicts.c.interaction_pk.in_(list(found))
    )
    return set(connection.scalars(judged))
