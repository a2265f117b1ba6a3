"""Review tasks, brought up to date with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from sqlalchemy import BigInteger, Connection, Select, Text, and_, func, literal, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from worker.store.bulk import arrays, unrolled
from worker.store.label_rows import Judgement
from worker.store.tables import review_labels, review_tasks

_EARLY_TASKS_SINCE = timedelta(days=1)
# A label and its task may be written at the same moment, so that neither saw the other.
_EARLY_MARGIN = timedelta(minutes=1)

_labels = review_labels.c


def refresh_tasks_of(connection: Connection, judgements: set[Judgement]) -> None:
    """Refresh the tasks that these judgements are or were about; a correction may have moved one to another task."""
    if judgements:
        named = arrays(("tool", "external_id"), sorted(judgements))
        _refresh(connection, sorted(connection.scalars(_ask_tasks(), named)))


def refresh_tasks_with_early_labels(connection: Connection) -> int:
    """Refresh the open tasks of the last day that had labels before they were made; return how many there are."""
    tasks, early = review_tasks.c, review_labels.c
    is_about = or_(
        early.task_id == tasks.task_id,
        and_(
            early.app == tasks.app,
            early.interaction_id == tasks.interaction_id,
            func.coalesce(early.revision, 1) == tasks.revision,
        ),
    )
    came_first = early.received_at < tasks.created_at + _EARLY_MARGIN
    found = (
        select(tasks.id)
        .where(tasks.state == "open", tasks.round == 1, tasks.created_at > func.now() - _EARLY_TASKS_SINCE)
        .where(select(early.id).where(is_about, came_first).exists())
    )
    return _refresh(connection, sorted(connection.scalars(found)))


@cache
def _ask_tasks() -> Select[tuple[int]]:
    rows = unrolled(tool=Text(), external_id=Text())
    place = (_labels.task_id, _labels.app, _labels.interaction_id, _labels.revision)
    task = func.review_task_at(*place, _labels.received_at, type_=BigInteger())
    same = and_(_labels.tool == rows.c.tool, _labels.external_id == rows.c.external_id)
    about = select(task.label("id")).select_from(review_labels).join(rows, same).distinct().subquery()
    return select(about.c.id).where(about.c.id.is_not(None))


def _refresh(connection: Connection, tasks: Sequence[int]) -> int:
    """In the order of their ids: each is locked to the end, and everyone takes them so."""
    each = func.unnest(literal(list(tasks), ARRAY(BigInteger))).column_valued("task")
    return len(connection.execute(select(func.refresh_review_task(each))).all()) if tasks else 0
