"""What other bounds, and another correction, would have changed: last week's sentences, counted again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select

from worker.rules.refit.correction import Correction
from worker.store.corrected import corrected_score
from worker.store.repository import Repository, reads
from worker.store.tables import interactions, sentences, thresholds, verdicts

DAYS = 7
SAMPLE_SENTENCES = 10

_logged = interactions.c
_found = sentences.c


@dataclass(frozen=True, slots=True)
class ChangedSentence:
    """A sentence that would be flagged and is not, or the other way round. ``text`` is the user's: never log it.

    ``score`` is what it would score.
    """

    app: str
    interaction_id: str
    sentence_index: int
    score: float
    flagged: bool
    text: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Scored sentences of the current answers of the last seven days, how many are flagged, and what would change.

    ``sample`` has at most ten of those that would, drawn by their ids, so that the same ones come each time. Of those
    ``without_terms`` nobody knows what they would score under a correction; they count as what would not change.
    """

    sentences: int
    flagged: int
    newly_flagged: int
    no_longer_flagged: int
    without_terms: int
    sample: tuple[ChangedSentence, ...]


class Previews(Repository):
    """What a threshold would change, before it is in force."""

    @reads
    def flagging_below(
        self,
        connection: Connection,
        app: str | None,
        scorer_id: int,
        flag_below: float,
        correction: Correction | None = None,
    ) -> Preview:
        """Count what a bound would change for the app; None: for every app without a version of its own in force.

        The bound is of scores under ``correction`` (None: of the detector's own). Compares with the flags as they were
        stored, whatever version gave them.
        """
        score = corrected_score(_found, correction)
        lower = score < flag_below
        counts = _last_week(
            app,
            scorer_id,
            func.count(),
            func.count().filter(_found.flagged),
            func.count().filter(~_found.flagged, lower),
            func.count().filter(_found.flagged, ~lower),
            func.count().filter(score.is_(None)),
        )
        sample = (
            _last_week(
                app,
                scorer_id,
                _logged.app,
                _logged.interaction_id,
                _found.sentence_index,
                score,
                _found.flagged,
                func.substr(_logged.answer, _found.start_char + 1, _found.end_char - _found.start_char),
            )
            .where(_found.flagged != lower)
            .order_by(func.hashint8(_found.verdict_id), _found.verdict_id, _found.sentence_index)
            .limit(SAMPLE_SENTENCES)
        )
        changed = tuple(ChangedSentence(*row) for row in connection.execute(sample))
        n_sentences, flagged, newly_flagged, no_longer_flagged, without_terms = connection.execute(counts).one()
        return Preview(n_sentences, flagged, newly_flagged, no_longer_flagged, without_terms, changed)


def _last_week(app: str | None, scorer_id: int, *wanted: ColumnElement[Any]) -> Select[Any]:
    since = func.now() - timedelta(days=DAYS)
    own = exists().where(thresholds.c.app == _logged.app, thresholds.c.scorer_id == scorer_id, thresholds.c.is_active)
    return (
        select(*wanted)
        .select_from(sentences)
        .join(verdicts, and_(verdicts.c.id == _found.verdict_id, verdicts.c.scored_at == _found.scored_at))
        .join(interactions, _logged.id == verdicts.c.interaction_pk)
        # The sentences' own time leaves the other weeks unread.
        .where(_found.scored_at >= since, _found.score.is_not(None), verdicts.c.scorer_id == scorer_id)
        .where(_logged.is_current, ~own if app is None else _logged.app == app)
    )
