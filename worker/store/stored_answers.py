"""One stored answer with what was found in it, by the names that its app gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, select

from worker.store.repository import Repository, reads
from worker.store.tables import interactions, passages, scorers, sentences, verdicts

_logged = interactions.c
_judged = verdicts.c
_found = sentences.c
_retrieved = passages.c


@dataclass(frozen=True, slots=True)
class StoredSentence:
    """A sentence of the answer; without a score it has the reason."""

    index: int
    start: int
    end: int
    score: float | None
    flagged: bool | None
    skip_reason: str | None
    supporting: Sequence[int]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An exchange in one revision, with the last verdict on it. ``passages`` are ids and texts, in retrieval order."""

    app: str
    interaction_id: str
    revision: int
    is_current: bool
    stored_at: datetime
    question: str
    answer: str
    scorer: str | None
    scored_at: datetime | None
    passages: Sequence[tuple[str, str]]
    sentences: Sequence[StoredSentence]


class StoredAnswers(Repository):
    """Answers, one at a time, for people to look at."""

    @reads
    def named(
        self, connection: Connection, app: str, interaction_id: str, revision: int | None = None
    ) -> StoredAnswer | None:
        """The answer in this revision, or the current one; None if there is none, or no longer."""
        head = connection.execute(_head(app, interaction_id, revision)).one_or_none()
        if head is None:
            return None
        retrieved = connection.execute(_passages_of(head))
        found = connection.execute(_sentences_of(head)) if head.verdict_id is not None else ()
        return StoredAnswer(
            app=head.app,
            interaction_id=head.interaction_id,
            revision=head.revision,
            is_current=head.is_current,
            stored_at=head.stored_at,
            question=head.question,
            answer=head.answer,
            scorer=head.scorer,
            scored_at=head.scored_at,
            passages=[(row.passage_id, row.text) for row in retrieved],
            sentences=[_sentence(row) for row in found],
        )


def _head(app: str, interaction_id: str, revision: int | None) -> Select[Any]:
    wanted = _logged.is_current if revision is None else _logged.revision == revision
    return (
        select(
            interactions,
            _judged.id.label("verdict_id"),
            _judged.scored_at,
            scorers.c.label.label("scorer"),
        )
        .outerjoin(verdicts, _judged.interaction_pk == _logged.id)
        .outerjoin(scorers, scorers.c.id == _judged.scorer_id)
        .where(_logged.app == app, _logged.interaction_id == interaction_id, wanted)
        .order_by(_judged.scored_at.desc().nulls_last(), _judged.id.desc())
        .limit(1)
    )


def _passages_of(head: Row[Any]) -> Select[Any]:
    # By the time as well, which finds the week in which a passage lies; so with the sentences.
    theirs = and_(_retrieved.interaction_pk == head.id, _retrieved.stored_at == head.stored_at)
    return select(_retrieved.passage_id, _retrieved.text).where(theirs).order_by(_retrieved.position)


def _sentences_of(head: Row[Any]) -> Select[Any]:
    theirs = and_(_found.verdict_id == head.verdict_id, _found.scored_at == head.scored_at)
    return select(sentences).where(theirs).order_by(_found.sentence_index)


def _sentence(row: Row[Any]) -> StoredSentence:
    supporting = tuple(row.supporting_passages or ())
    place = (row.sentence_index, row.start_char, row.end_char)
    return StoredSentence(*place, row.score, row.flagged, row.skip_reason, supporting)
