"""What each reviewer said last of each sentence."""

from __future__ import annotations

from sqlalchemy import Connection, text

from schemas.review_label import Label
from worker.rules.agreement import Vote
from worker.store.repository import Repository, reads

_VOTES = text("""
SELECT app, interaction_id, revision, sentence_index, reviewer, label, unsupported
FROM v_review_votes
WHERE is_last AND (CAST(:app AS text) IS NULL OR app = :app)
ORDER BY app, interaction_id, revision, sentence_index, reviewer
""")


class Votes(Repository):
    """What each reviewer said last of each sentence."""

    @reads
    def last(self, connection: Connection, app: str | None = None) -> list[Vote]:
        """What each reviewer said last of each sentence, of one app or of all."""
        found = connection.execute(_VOTES, {"app": app})
        return [
            Vote(
                (row.app, row.interaction_id, row.revision, row.sentence_index),
                row.reviewer,
                Label(row.label),
                row.unsupported,
            )
            for row in found
        ]
