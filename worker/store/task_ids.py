"""The ids of review tasks and of what is told about them: the same again in a database that was restored."""

from __future__ import annotations

import hashlib
from uuid import UUID

from sqlalchemy import ColumnElement, Text, Uuid, cast, extract, func, select

from worker.store.scorers import IDENTITY
from worker.store.tables import review_tasks, scorers

_VERSION, _VARIANT = "5", "a"


def task_id(
    app: ColumnElement[str],
    interaction_id: ColumnElement[str],
    content_hash: ColumnElement[bytes],
    logged_at: ColumnElement[object],
    scorer_id: int,
) -> ColumnElement[UUID]:
    """The id of the task about a content, given at a time, under a scorer identity.

    An id may be used again after retention has removed its answer, even for the same content: the tasks that are left
    of it are counted.
    """
    tasks = review_tasks.c
    identity = [select(scorers.c[name]).where(scorers.c.id == scorer_id).scalar_subquery() for name in IDENTITY]
    left = select(func.count()).where(
        tasks.app == app, tasks.interaction_id == interaction_id, tasks.interaction_pk.is_(None)
    )
    facts = (app, interaction_id, func.encode(content_hash, "hex"), extract("epoch", logged_at), *identity)
    return func.named_uuid(cast(func.jsonb_build_array(*facts, left.scalar_subquery()), Text), type_=Uuid())


def event_id(task: UUID, channel: str, round_number: int) -> UUID:
    """The id of what is told about a task on a channel in a round. The database makes those of later rounds alike."""
    return named_uuid(f"{task}/{channel}/{round_number}")


def named_uuid(name: str) -> UUID:
    """The UUID that the database's function of this name makes of a text."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return UUID(f"{digest[:12]}{_VERSION}{digest[13:16]}{_VARIANT}{digest[17:]}")
