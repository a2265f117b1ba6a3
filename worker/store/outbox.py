"""The outbox: what is to be told about review tasks, each event once per channel, in the order of writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from schemas.review_task import ReviewTask
from worker.store import leases
from worker.store.repository import Repository, reads, writes
from worker.store.tables import attribution_jobs, outbox, review_tasks, verdicts
from worker.store.task_contents import task_contents

_events = outbox.c
_tasks = review_tasks.c
_UNDER_WAY = ("waiting", "running")


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """Where the partitions of a topic ended, by partition; ``topic_id`` tells a topic that was created again."""

    topic: str
    topic_id: str | None
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OutboxEvent(leases.LeasedJob):
    """A claimed event. ``task`` is None if the answer was deleted before it could be sent.

    ``sent_after`` is None until the event may have been sent to a topic; what was sent lies behind these ends.
    """

    table: ClassVar[Table] = outbox

    event_id: UUID
    sent_after: TopicEnds | None = None
    task: ReviewTask | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What a relay claims: at most ``limit`` events of one channel, for ``lease_s`` seconds.

    An event whose answer waits for attribution is left until that has ended or the task is ``wait_s`` seconds old.
    """

    channel: str
    owner: str
    limit: int
    lease_s: float
    max_attempts: int
    wait_s: float


class Outbox(Repository):
    """What is still to be told about review tasks."""

    @writes
    def claim(self, connection: Connection, wanted: LeaseRequest) -> tuple[OutboxEvent, ...]:
        """Lease the oldest events that are due, with their tasks; none if none is due."""
        candidates = (
            select(_events.id).where(_events.channel == wanted.channel, ~_waits(wanted.wait_s)).order_by(_events.id)
        )
        claimed = leases.claim(
            connection,
            outbox,
            candidates,
            owner=wanted.owner,
            lease_s=wanted.lease_s,
            max_attempts=wanted.max_attempts,
            limit=wanted.limit,
        )
        contents = task_contents(connection, [row.task_pk for row in claimed])
        in_order = sorted(claimed, key=lambda row: int(row.id))
        return tuple(_event(row, wanted.owner, contents.get(row.task_pk)) for row in in_order)

    @writes
    def note_sending(
        self, connection: Connection, events: Sequence[OutboxEvent], ends: TopicEnds, lease_s: float
    ) -> tuple[OutboxEvent, ...]:
        """Note that the events are going to be sent behind ``ends`` and renew their leases; return those still leased.

        What was noted at an earlier attempt stays.
        """
        if not events:
            return ()
        note = (
            update(outbox)
            .where(or_(*map(leases.is_ours, events)))
            .values(
                sent_after=func.coalesce(_events.sent_after, literal(_noted(ends), JSONB)),
                leased_until=func.now() + timedelta(seconds=lease_s),
            )
            .returning(_events.id)
        )
        ours = set(connection.scalars(note))
        return tuple(event for event in events if event.id in ours)

    @writes
    def finish(self, connection: Connection, events: Sequence[OutboxEvent]) -> int:
        """Close the events; return how many were still leased."""
        return sum(leases.finish(connection, event) for event in events)

    @reads
    def open_backlogs(self, connection: Connection) -> dict[str, leases.Backlog]:
        """How many events of each channel wait, run and have failed; quick, however many are done. ``done`` is 0."""
        return leases.open_backlogs(connection, _events.channel)


def _waits(wait_s: float) -> ColumnElement[bool]:
    """Whether the answer's attribution is under way and the task young enough to wait for it."""
    judged, jobs = verdicts.c, attribution_jobs.c
    return exists().where(
        _tasks.id == _events.task_pk,
        _tasks.created_at > func.now() - timedelta(seconds=wait_s),
        judged.interaction_pk == _tasks.interaction_pk,
        judged.scorer_id == _tasks.scorer_id,
        jobs.verdict_id == judged.id,
        jobs.state.in_(_UNDER_WAY),
    )


def _event(row: Row[Any], owner: str, content: ReviewTask | None) -> OutboxEvent:
    told = {"event_id": row.event_id, "round": row.round}
    task = None if content is None else content.model_copy(update=told)
    return OutboxEvent(row.id, owner, row.attempts, row.event_id, _ends(row.sent_after), task)


def _noted(ends: TopicEnds) -> dict[str, object]:
    return {
        "topic": ends.topic,
        "topic_id": ends.topic_id,
        "ends": {str(partition): end for partition, end in ends.ends.items()},
    }


def _ends(noted: Mapping[str, Any] | None) -> TopicEnds | None:
    if noted is None:
        return None
    ends = {int(partition): end for partition, end in noted["ends"].items()}
    return TopicEnds(noted["topic"], noted["topic_id"], ends)
