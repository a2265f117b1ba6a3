"""What each reviewer said last of each sentence."""

from __future__ import annotations

from sqlalchemy import Connection, text

from schemas.review_label import Label
from worker.rules.agreement import Vote
from worker.store.repository import Repository, reads

_VOTES = text("""
SELECT DISTINCT ON (app, interaction_id, revision, sentence_index, reviewer)
    app, interaction_id, revision, sentence_index, reviewer, label
FROM v_review_labels
WHERE CAST(:app AS text) IS NULL OR app = :app
ORDER BY app, interaction_id, revision, sentence_index, reviewer, time DESC, received_at DESC
""")


class Votes(Repository):
    """What each reviewer said last of each sentence."""

    @reads
    def last(self, connection: Connection, app: str | None = None) -> list[Vote]:
        """What each reviewer said last of each sentence, of one app or of all."""
        found = connection.execute(_VOTES, {"app": app})
        return [
            Vote((row.app, row.interaction_id, row.revision, row.sentence_index), row.reviewer, Label(row.label))
            for row in found
        ]
