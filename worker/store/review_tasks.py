"""Review tasks: an answer with the sentences that people are asked about, and what is to be told about it.

A task outlives its answer, for the sake of its labels; it holds no word of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    LargeBinary,
    any_,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.dml import ReturningInsert
from sqlalchemy.types import TypeEngine

from schemas.review_task import ReviewTask
from worker.rules.selection import Selection
from worker.store import leases
from worker.store.bulk import Values, arrays, insert_rows, parts, unrolled
from worker.store.repository import Repository, reads
from worker.store.revisions import ContentKey, Judged
from worker.store.tables import interactions, outbox, review_sentences, review_tasks
from worker.store.task_contents import TaskFilter, count_tasks, task_contents, task_page
from worker.store.task_ids import event_id, task_id

REMOVED = "the answer was removed by retention"
REPLACED = "another scorer has judged the answer since"
RETIRED = "its scorer is no longer at work"

_TASK_COLUMNS = (
    "app",
    "interaction_id",
    "revision",
    "interaction_pk",
    "threshold_id",
    "reason",
    "probability",
    "lowest_score",
    "reviewers",
)
# What the id is made of, besides.
_NAMED_BY: dict[str, TypeEngine[Any]] = {"content_hash": LargeBinary(), "logged_at": DateTime(timezone=True)}
_SENTENCE_COLUMNS = (
    "task_pk",
    "sentence_index",
    "start_char",
    "end_char",
    "score",
    "flagged",
    "reason",
    "probability",
    "terms",
    "correction",
)
_OUTBOX_COLUMNS = ("task_pk", "channel", "round", "event_id")
_FIRST_ROUND = 1

_tasks = review_tasks.c
# Written into the statement, so that the index that holds these states alone can be used.
_IS_OPEN = _tasks.state.in_([literal_column("'open'"), literal_column("'disputed'")])


@dataclass(frozen=True, slots=True)
class AskedAnswer:
    """A stored revision that people are asked about. ``logged_at`` is when it was given, None if nobody knows."""

    interaction_pk: int
    key: ContentKey
    logged_at: datetime | None
    revision: int
    judged: Judged
    selection: Selection


class ReviewTasks(Repository):
    """The tasks with what they show to people."""

    @reads
    def count(self, connection: Connection, wanted: TaskFilter) -> int:
        """How many review tasks there are."""
        return count_tasks(connection, wanted)

    def all(self, wanted: TaskFilter, *, page: int = 50) -> Iterator[ReviewTask]:
        """The tasks in an order that means nothing, the same each time, without those whose answer was deleted.

        Each page is a transaction.
        """
        after: UUID | None = UUID(int=0)
        while after is not None:
            after, tasks = self._page(wanted, after, page)
            yield from tasks

    @reads
    def by_id(self, connection: Connection, task_id: UUID) -> ReviewTask | None:
        """One task; None if nobody knows it or its answer was deleted."""
        pk = connection.scalar(select(_tasks.id).where(_tasks.task_id == task_id))
        return None if pk is None else task_contents(connection, [pk]).get(pk)

    @reads
    def _page(
        self, connection: Connection, wanted: TaskFilter, after: UUID, limit: int
    ) -> tuple[UUID | None, list[ReviewTask]]:
        return task_page(connection, wanted, after, limit)


def write_tasks(connection: Connection, scorer_id: int, asked: Sequence[AskedAnswer]) -> None:
    """Insert a task with its sentences for each answer, and what is to be told of it on its channels."""
    tasks = _insert_tasks(connection, scorer_id, asked)
    selected = [values for (task_pk, _), answer in tasks.items() for values in _sentence_values(task_pk, answer)]
    insert_rows(connection, review_sentences, _SENTENCE_COLUMNS, selected)
    told = [
        (task_pk, channel, _FIRST_ROUND, event_id(named, channel, _FIRST_ROUND))
        for (task_pk, named), answer in tasks.items()
        for channel in answer.judged.channels
    ]
    insert_rows(connection, outbox, _OUTBOX_COLUMNS, told)


def withdraw_removed(connection: Connection, app: str) -> int:
    """Withdraw the app's open tasks whose answers are gone; return how many."""
    return len(_withdraw(connection, [_tasks.app == app, _tasks.interaction_pk.is_(None)], REMOVED))


def withdraw_old(connection: Connection, before: datetime, limit: int) -> int:
    """Withdraw at most ``limit`` open tasks on answers that were stored before a time; return how many."""
    old = select(_tasks.id).join(interactions, interactions.c.id == _tasks.interaction_pk)
    old = old.where(_IS_OPEN, interactions.c.stored_at < before).limit(limit)
    return len(_withdraw(connection, [_tasks.id.in_(old)], REMOVED))


def withdraw_replaced(connection: Connection, scorer_id: int, interaction_pks: Sequence[int]) -> None:
    """Withdraw the open tasks that other scorers asked about these answers, and tell those who were told of them."""
    theirs = _tasks.interaction_pk == any_(literal(list(interaction_pks), ARRAY(BigInteger)))
    _take_back(connection, _withdraw(connection, [theirs, _tasks.scorer_id != scorer_id], REPLACED))


def withdraw_retired(connection: Connection, at_work: Sequence[int], limit: int) -> int:
    """Withdraw at most ``limit`` open tasks of scorers that are not at work; return how many."""
    retired = select(_tasks.id).where(_IS_OPEN, _tasks.scorer_id.not_in(at_work)).limit(limit)
    withdrawn = _withdraw(connection, [_tasks.id.in_(retired)], RETIRED)
    _take_back(connection, withdrawn)
    return len(withdrawn)


def _withdraw(connection: Connection, chosen: Sequence[ColumnElement[bool]], reason: str) -> list[int]:
    """Close the open ones of the chosen tasks, and leave untold what nobody need answer any more."""
    closed = {"state": "withdrawn", "closed_at": func.now(), "closed_because": reason}
    close = update(review_tasks).where(_IS_OPEN, *chosen).values(**closed)
    withdrawn = list(connection.scalars(close.returning(_tasks.id)))
    if withdrawn:
        theirs = outbox.c.task_pk == any_(literal(withdrawn, ARRAY(BigInteger)))
        untold = update(outbox).where(theirs, outbox.c.state == leases.WAITING)
        connection.execute(untold.values(state="failed", finished_at=func.now(), last_error=reason))
    return withdrawn


def _take_back(connection: Connection, withdrawn: Sequence[int]) -> None:
    """Enter what tells of the withdrawal, on the channels on which the task was told or may have been told.

    It takes the round behind the last, which a withdrawn task has no other use for.
    """
    if not withdrawn:
        return
    theirs = outbox.c.task_pk == any_(literal(list(withdrawn), ARRAY(BigInteger)))
    may_be_told = or_(outbox.c.state.in_(["running", "done"]), outbox.c.attempts > 0)
    following = _tasks.round + 1
    named = func.named_uuid(func.concat(_tasks.task_id, "/", outbox.c.channel, "/", following))
    told = (
        select(outbox.c.task_pk, outbox.c.channel, following, named)
        .join(review_tasks, _tasks.id == outbox.c.task_pk)
        .where(theirs, may_be_told)
        .distinct()
    )
    connection.execute(insert(outbox).from_select(list(_OUTBOX_COLUMNS), told))


def _insert_tasks(
    connection: Connection, scorer_id: int, asked: Sequence[AskedAnswer]
) -> Mapping[tuple[int, UUID], AskedAnswer]:
    """The answers by the primary key and id of their task."""
    answers = {answer.interaction_pk: answer for answer in asked}
    rows = [_task_values(answer) for answer in asked]
    return {
        (row.id, row.task_id): answers[row.interaction_pk]
        for part in parts(rows)
        for row in connection.execute(_tasks_from_arrays(scorer_id), arrays((*_TASK_COLUMNS, *_NAMED_BY), part))
    }


@cache
def _tasks_from_arrays(scorer_id: int) -> ReturningInsert[Any]:
    types = {name: _tasks[name].type for name in _TASK_COLUMNS} | _NAMED_BY
    source = unrolled(**types).c
    named = task_id(source.app, source.interaction_id, source.content_hash, source.logged_at, scorer_id)
    values = select(named, literal(scorer_id), *(source[name] for name in _TASK_COLUMNS))
    insert_tasks = insert(review_tasks).from_select(["task_id", "scorer_id", *_TASK_COLUMNS], values)
    return insert_tasks.returning(_tasks.id, _tasks.task_id, _tasks.interaction_pk)


def _task_values(answer: AskedAnswer) -> Values:
    """In the order of _TASK_COLUMNS and _NAMED_BY."""
    verdict, selection = answer.judged.verdict, answer.selection
    app, interaction_id, content_hash = answer.key
    return (
        app,
        interaction_id,
        answer.revision,
        answer.interaction_pk,
        verdict.threshold.id,
        selection.reason,
        selection.probability,
        verdict.lowest_score,
        verdict.reviewers,
        content_hash,
        answer.logged_at,
    )


def _sentence_values(task_pk: int, answer: AskedAnswer) -> list[Values]:
    """In the order of _SENTENCE_COLUMNS."""
    verdict = answer.judged.verdict
    rows: list[Values] = []
    for selected in answer.selection.sentences:
        index = selected.sentence_index
        found, terms = answer.judged.grounding.sentences[index], verdict.terms[index]
        span = (found.sentence.start, found.sentence.end)
        kept = (None if terms is None else list(terms), verdict.corrections[index])
        judged = (verdict.scores[index], verdict.flagged[index], selected.reason, selected.probability)
        rows.append((task_pk, found.index, *span, *judged, *kept))
    return rows
