"""What reviewers said of the sentences on which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from worker.store.repository import Repository, reads

_SAID = text("""
WITH disputed AS (
    SELECT t.id, t.task_id, t.app, t.round FROM review_tasks t
    WHERE t.state = 'disputed' AND t.interaction_pk IS NOT NULL
    ORDER BY t.created_at, t.id
    LIMIT :limit
)
SELECT d.task_id, d.app, d.round, s.sentence_index, l.reviewer, l.label, l.detail, l.note, l.time
FROM disputed d
JOIN review_sentences s ON s.task_pk = d.id
JOIN v_standing_labels l ON l.task_id = d.task_id AND l.sentence_index = s.sentence_index
WHERE EXISTS (
    SELECT FROM v_standing_labels o JOIN v_label_votes v ON v.label = o.label
    WHERE o.task_id = d.task_id AND o.sentence_index = s.sentence_index
    HAVING bool_or(v.unsupported) AND NOT bool_and(v.unsupported)
)
ORDER BY d.id, s.sentence_index, l.time, l.reviewer
""")


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one reviewer said."""

    reviewer: str
    label: str
    detail: str | None
    note: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Dispute:
    """A sentence on which reviewers differ, with all that was said of it, the earliest first."""

    task_id: UUID
    app: str
    round: int
    sentence_index: int
    opinions: Sequence[Opinion]


class Disputes(Repository):
    """The tasks on which reviewers differ."""

    @reads
    def open(self, connection: Connection, limit: int) -> list[Dispute]:
        """The disputed sentences of at most ``limit`` tasks, the oldest tasks first."""
        found = connection.execute(_SAID, {"limit": limit}).all()
        return [_dispute(list(said)) for _, said in groupby(found, lambda row: (row.task_id, row.sentence_index))]


def _dispute(said: Sequence[Row[Any]]) -> Dispute:
    first = said[0]
    opinions = [Opinion(row.reviewer, row.label, row.detail, row.note, row.time) for row in said]
    return Dispute(first.task_id, first.app, first.round, first.sentence_index, opinions)
