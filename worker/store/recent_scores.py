"""The newest scores of an app under one scorer: what its bounds follow until it has labels."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, func, select, true

from worker.rules.refit.correction import Correction
from worker.rules.traffic import Recent
from worker.store.corrected import corrected_score
from worker.store.repository import Repository, reads
from worker.store.tables import interactions, sentences, verdicts

RECENT_DAYS = 28
MAX_SENTENCES = 5_000


class RecentScores(Repository):
    """What an app's newest sentences scored."""

    @reads
    def of(
        self,
        connection: Connection,
        app: str,
        scorer_id: int,
        correction: Correction | None = None,
        *,
        max_sentences: int = MAX_SENTENCES,
    ) -> Recent | None:
        """The newest scores, at most so many, of the app's current answers of the last RECENT_DAYS; None if none.

        They are those under ``correction`` (None: the detector's own), whatever the sentences were judged by; without
        terms a sentence has none under any.
        """
        rows = connection.execute(_newest(app, scorer_id, correction, max_sentences)).all()
        if not rows:
            return None
        scores = np.array([row.score for row in rows], dtype=np.float64)
        names, places = np.unique([row.verdict_id for row in rows], return_inverse=True)
        lowest = np.full(len(names), np.inf)
        np.minimum.at(lowest, places, scores)
        return Recent(scores, lowest, rows[-1].stored_at, rows[0].stored_at)


def _newest(app: str, scorer_id: int, correction: Correction | None, most: int) -> Select[Any]:
    """The sentences, newest first.

    They are looked up verdict by verdict, by their own time as well, which finds the week in which they lie, until
    there are enough: OFFSET 0 keeps the planner from reading those of all apps instead.
    """
    logged, judged = interactions.c, verdicts.c
    newest = (
        select(judged.id, judged.scored_at, logged.stored_at)
        .join(interactions, judged.interaction_pk == logged.id)
        .where(logged.app == app, logged.stored_at >= func.now() - timedelta(days=RECENT_DAYS), logged.is_current)
        .where(judged.scorer_id == scorer_id, judged.n_scored > 0)
        .order_by(logged.stored_at.desc())
        .limit(most)
        .subquery("newest")
    )
    score = corrected_score(sentences.c, correction)
    theirs = (
        select(score.label("score"))
        .where(sentences.c.verdict_id == newest.c.id, sentences.c.scored_at == newest.c.scored_at, score.is_not(None))
        .offset(0)
        .lateral("theirs")
    )
    return (
        select(newest.c.id.label("verdict_id"), theirs.c.score, newest.c.stored_at)
        .join(theirs, true())
        .order_by(newest.c.stored_at.desc())
        .limit(most)
    )
