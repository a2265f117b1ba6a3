"""Which sentence a reviewer is asked about next on the review page: tasks that wait for them, each on a lease.

Tasks come in the order of their ids, which are made by a hash. So nobody reads the lowest scores or the oldest answers
first, and what was labelled by any time is a random part of what was asked. While a task is leased to as many people as
are still wanted, nobody else gets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from worker.store.repository import Repository, reads, writes

LATELY_DAYS = 30
"""How long ago one's own labels may have come to be listed: the whole table would be read otherwise."""

_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('gasp review leases'))")
_END = text("DELETE FROM review_leases WHERE leased_until <= now()")

# Sentences that this reviewer has not labelled and that want one more label than others have given or are about to.
_WAITING = """
FROM review_tasks t JOIN review_sentences s ON s.task_pk = t.id
CROSS JOIN LATERAL (
    SELECT count(DISTINCT l.reviewer) FILTER (WHERE l.reviewer <> :reviewer) AS others,
        coalesce(bool_or(l.reviewer = :reviewer), false) AS mine,
        coalesce(bool_or(v.unsupported) AND NOT bool_and(v.unsupported), false) AS contested
    FROM v_standing_labels l LEFT JOIN v_label_votes v ON v.label = l.label
    WHERE l.task_id = t.task_id AND l.sentence_index = s.sentence_index
) said
CROSS JOIN LATERAL (
    SELECT count(*) AS held FROM review_leases h
    WHERE h.task_pk = t.id AND h.reviewer <> :reviewer AND NOT h.is_skipped AND h.leased_until > now()
        AND NOT EXISTS (
            SELECT FROM v_standing_labels d
            WHERE d.task_id = t.task_id AND d.sentence_index = s.sentence_index AND d.reviewer = h.reviewer
        )
) leases
WHERE t.state IN ('open', 'disputed') AND t.interaction_pk IS NOT NULL AND NOT said.mine
    AND (CAST(:app AS text) IS NULL OR t.app = :app)
    AND said.others + leases.held < CASE
        WHEN t.round > 1 AND said.contested THEN greatest(t.reviewers, 2) + t.round - 1
        ELSE t.reviewers
    END
    AND NOT EXISTS (
        SELECT FROM review_leases k
        WHERE k.task_pk = t.id AND k.reviewer = :reviewer AND k.is_skipped AND k.leased_until > now()
    )
"""
_NEXT = text(f"""
SELECT t.id, t.task_id, s.sentence_index {_WAITING}
ORDER BY EXISTS (
    SELECT FROM review_leases o WHERE o.task_pk = t.id AND o.reviewer = :reviewer AND o.leased_until > now()
) DESC, t.task_id, s.sentence_index
LIMIT 1
""")  # noqa: S608 - of this module's own constants
_COUNT = text(f"SELECT count(*) {_WAITING}")
_BY_APP = text(f"SELECT t.app, count(*) AS waiting {_WAITING} GROUP BY t.app ORDER BY t.app")
_LEASE = text("""
INSERT INTO review_leases (task_pk, reviewer, is_skipped, leased_until)
SELECT id, :reviewer, :is_skipped, now() + make_interval(secs => :lease_s) FROM review_tasks WHERE task_id = :task_id
ON CONFLICT (task_pk, reviewer) DO UPDATE SET is_skipped = excluded.is_skipped, leased_until = excluded.leased_until
""")
_SAID = """
SELECT l.time, l.external_id, l.task_id, l.sentence_index, l.label, l.detail, l.note, t.app,
    t.interaction_id, t.revision
FROM v_standing_labels l JOIN review_tasks t ON t.task_id = l.task_id
WHERE l.tool = :tool AND l.reviewer = :reviewer
"""
_SAID_OF_TASK = text(f"{_SAID} AND l.task_id = :task_id ORDER BY l.sentence_index")
_SAID_LATELY = text(f"""
{_SAID} AND l.received_at > now() - interval '{LATELY_DAYS} days'
ORDER BY l.time DESC, l.external_id
LIMIT :limit
""")
_TODAY = text("""
SELECT count(*) FROM v_standing_labels
WHERE tool = :tool AND reviewer = :reviewer AND received_at >= date_trunc('day', now(), 'UTC')
""")


@dataclass(frozen=True, slots=True)
class Asked:
    """A sentence that somebody is asked about."""

    task_id: UUID
    sentence_index: int


@dataclass(frozen=True, slots=True)
class Said:
    """A reviewer's own label that stands."""

    asked: Asked
    app: str
    interaction_id: str
    revision: int
    at: datetime
    external_id: str
    label: str
    detail: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How many sentences wait for a reviewer, and how many they have labelled on this UTC day."""

    waiting: int
    today: int


class ReviewQueue(Repository):
    """The queue of each reviewer. ``app`` is one app's part of it, None all of it."""

    @writes
    def take(self, connection: Connection, reviewer: str, lease_s: float, app: str | None = None) -> Asked | None:
        """The next sentence, with the task leased for so many seconds; None if nothing waits.

        A task that the reviewer has open comes first. One at a time takes, so that no two take the same.
        """
        connection.execute(_LOCK)
        connection.execute(_END)
        found = connection.execute(_NEXT, {"reviewer": reviewer, "app": app}).one_or_none()
        if found is None:
            return None
        _lease(connection, found.task_id, reviewer, lease_s)
        return Asked(found.task_id, found.sentence_index)

    @writes
    def hold(self, connection: Connection, reviewer: str, task_id: UUID, lease_s: float) -> None:
        """Lease a task that the reviewer opened by its address, from now on for so many seconds."""
        _lease(connection, task_id, reviewer, lease_s)

    @writes
    def skip(self, connection: Connection, reviewer: str, task_id: UUID, skip_s: float) -> None:
        """Give the task back, and do not offer it to this reviewer for so many seconds."""
        _lease(connection, task_id, reviewer, skip_s, is_skipped=True)

    @reads
    def progress(self, connection: Connection, reviewer: str, tool: str) -> Progress:
        """What waits for the reviewer, and what they labelled today with this tool."""
        waiting = connection.execute(_COUNT, {"reviewer": reviewer, "app": None}).scalar_one()
        today = connection.execute(_TODAY, {"reviewer": reviewer, "tool": tool}).scalar_one()
        return Progress(waiting, today)

    @reads
    def waiting_by_app(self, connection: Connection, reviewer: str) -> list[tuple[str, int]]:
        """The apps in which sentences wait for the reviewer, and how many."""
        return [(row.app, row.waiting) for row in connection.execute(_BY_APP, {"reviewer": reviewer, "app": None})]

    @reads
    def said_of(self, connection: Connection, reviewer: str, tool: str, task_id: UUID) -> dict[int, Said]:
        """The reviewer's labels of this tool on a task, by the sentence's index."""
        asked = {"reviewer": reviewer, "tool": tool, "task_id": task_id}
        return {row.sentence_index: _said(row) for row in connection.execute(_SAID_OF_TASK, asked)}

    @reads
    def said_lately(self, connection: Connection, reviewer: str, tool: str, limit: int) -> list[Said]:
        """The reviewer's last labels of this tool, of ``LATELY_DAYS``, the latest first."""
        asked = {"reviewer": reviewer, "tool": tool, "limit": limit}
        return [_said(row) for row in connection.execute(_SAID_LATELY, asked)]


def _lease(connection: Connection, task_id: UUID, reviewer: str, lease_s: float, *, is_skipped: bool = False) -> None:
    """In place of the reviewer's lease of the task that there may be."""
    named = {"task_id": task_id, "reviewer": reviewer, "is_skipped": is_skipped, "lease_s": lease_s}
    connection.execute(_LEASE, named)


def _said(row: Row[Any]) -> Said:
    place = Asked(row.task_id, row.sentence_index)
    return Said(
        place, row.app, row.interaction_id, row.revision, row.time, row.external_id, row.label, row.detail, row.note
    )
