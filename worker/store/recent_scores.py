"""The newest scores of an app under one scorer: what its bounds follow until it has labels."""

from __future__ import annotations

import numpy as np
from sqlalchemy import Connection, text

from worker.rules.traffic import Recent
from worker.store.repository import Repository, reads

RECENT_DAYS = 28
MAX_SENTENCES = 5_000


class RecentScores(Repository):
    """What an app's newest sentences scored."""

    @reads
    def of(
        self, connection: Connection, app: str, scorer_id: int, *, max_sentences: int = MAX_SENTENCES
    ) -> Recent | None:
        """The newest scores, at most so many, of the app's current answers of the last RECENT_DAYS; None if none."""
        asked = {"app": app, "scorer": scorer_id, "days": RECENT_DAYS, "most": max_sentences}
        rows = connection.execute(_NEWEST, asked).all()
        if not rows:
            return None
        scores = np.array([row.score for row in rows], dtype=np.float64)
        names, places = np.unique([row.verdict_id for row in rows], return_inverse=True)
        lowest = np.full(len(names), np.inf)
        np.minimum.at(lowest, places, scores)
        return Recent(scores, lowest, rows[-1].stored_at, rows[0].stored_at)


# The sentences are looked up verdict by verdict, by their own time as well, which finds the week in which they lie,
# until there are enough: OFFSET 0 keeps the planner from reading those of all apps instead.
_NEWEST = text("""
SELECT newest.id AS verdict_id, theirs.score, newest.stored_at
FROM (
    SELECT v.id, v.scored_at, i.stored_at
    FROM interactions i
    JOIN verdicts v ON v.interaction_pk = i.id
    WHERE i.app = :app AND i.stored_at >= now() - make_interval(days => :days) AND i.is_current
        AND v.scorer_id = :scorer AND v.n_scored > 0
    ORDER BY i.stored_at DESC
    LIMIT :most
) newest
CROSS JOIN LATERAL (
    SELECT s.score FROM sentences s
    WHERE s.verdict_id = newest.id AND s.scored_at = newest.scored_at AND s.score IS NOT NULL
    OFFSET 0
) theirs
ORDER BY newest.stored_at DESC
LIMIT :most
""")
