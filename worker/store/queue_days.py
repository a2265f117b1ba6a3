"""The review queue day by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, column, func, or_, select, table

from worker.store.tables import review_tasks

_task = review_tasks.c
_label = table("v_review_labels", column("time"), column("app"), column("scorer_id")).c


@dataclass(frozen=True, slots=True)
class Day:
    """A UTC day of the queue: tasks that wait at its end, as far as their present state tells, and labels."""

    day: date
    waiting: int
    labels: int


def queue_days(connection: Connection, app: str, scorer_id: int, since: datetime, until: datetime) -> tuple[Day, ...]:
    """Every day of the period, the first and the last one in part."""
    theirs = _task.app == app, _task.scorer_id == scorer_id
    unclosed = or_(_task.closed_at.is_(None), _task.closed_at >= since)
    waiting = connection.scalar(select(func.count()).where(*theirs, _task.created_at < since, unclosed)) or 0
    opened = _per_day(connection, _task.created_at, since, until, *theirs)
    closed = _per_day(connection, _task.closed_at, since, until, *theirs)
    labels = _per_day(connection, _label.time, since, until, _label.app == app, _label.scorer_id == scorer_id)
    days = []
    for number in range((until.date() - since.date()).days + 1):
        day = since.date() + timedelta(days=number)
        waiting += opened[day] - closed[day]
        days.append(Day(day, waiting, labels[day]))
    return tuple(days)


def _per_day(
    connection: Connection,
    moment: ColumnElement[Any],
    since: datetime,
    until: datetime,
    *conditions: ColumnElement[bool],
) -> Mapping[date, int]:
    day = func.date_trunc("day", moment, "UTC").label("day")
    counted = select(day, func.count()).where(*conditions, moment >= since, moment < until).group_by(day)
    return Counter({found.astimezone(UTC).date(): count for found, count in connection.execute(counted)})
