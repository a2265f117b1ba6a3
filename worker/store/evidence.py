"""What calibration is fed with: labelled sentences, and the scores of the traffic, of one scorer identity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    any_,
    column,
    func,
    literal,
    select,
    table,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import REAL, Text

from worker.rules.calibration.labels import Population
from worker.rules.refit.correction import Correction
from worker.rules.refit.lesson import TaughtSentence, UnansweredSentence
from worker.store.corrected import Columns, corrected_score, detector_score, known_terms, stored_terms
from worker.store.repository import Repository, reads
from worker.store.tables import interactions, review_sentences, review_tasks, sentences, verdicts

LABEL_DAYS = 365
MAX_LABELS = 50_000
MAX_UNANSWERED = 200_000
TRAFFIC_DAYS = 28
MAX_SENTENCES = 50_000
# Of more answers a random share is read.
MAX_ANSWERS = 10_000

_SEED = 0
_ONE_DAY = timedelta(days=1)
_tasks = review_tasks.c
_asked = review_sentences.c
results = table(
    "v_review_consensus",
    *(
        column(name)
        for name in (
            "time",
            "app",
            "task_pk",
            "sentence_index",
            "interaction_id",
            "interaction_pk",
            "scorer_id",
            "start_char",
            "end_char",
            "score",
            "selection_probability",
            "unsupported",
            "correction",
        )
    ),
    column("terms", ARRAY(REAL)),
)
_consensus = results.c


class Evidence(Repository):
    """What the thresholds of one scorer identity are learned from."""

    @reads
    def labelled_sentences(self, connection: Connection, scorer_id: int) -> list[tuple[str, TaughtSentence]]:
        """What people agreed on in the last year, with its app, newest first: at most 50,000 sentences.

        The scores are the detector's, whatever correction the sentence was judged by.
        """
        return labelled_sentences(connection, scorer_id)

    @reads
    def unanswered_sentences(self, connection: Connection, scorer_id: int) -> list[tuple[str, UnansweredSentence]]:
        """What people were asked about in the last year without agreeing on anything, with its app.

        Of more than 200,000 sentences only those of each so many tasks are read, with a probability that is lower by
        as much. The scores are the detector's, whatever correction the sentence was judged by.
        """
        return unanswered_sentences(connection, scorer_id)

    @reads
    def population(
        self,
        connection: Connection,
        apps: Sequence[str],
        scorer_id: int,
        *,
        until: datetime | None = None,
        correction: Correction | None = None,
        max_answers: int = MAX_ANSWERS,
    ) -> Population:
        """The scores of the apps' current answers that were stored in the 28 days before ``until`` (None: now).

        They are those under ``correction`` (None: the detector's own), whatever the sentences were judged by; without
        terms a sentence has none under any. Of more than ``max_answers`` answers a random share is read, of more than
        50,000 sentences a random part is kept.
        """
        end = datetime.now(UTC) if until is None else until
        counted = select(func.count(), func.min(interactions.c.stored_at)).where(*_window(interactions, apps, end))
        stored, first = connection.execute(counted).one()
        share = min(1.0, max_answers / max(stored, 1))
        found = connection.execute(_scores(apps, scorer_id, end, share, correction)).all()
        rows = [row for row in found if row.score is not None]
        answers = np.array([row.verdict_id for row in rows], dtype=np.int64)
        scores = np.array([row.score for row in rows], dtype=np.float64)
        names, places = np.unique(answers, return_inverse=True)
        lowest = np.full(len(names), np.inf)
        np.minimum.at(lowest, places, scores)
        days = 1.0 if first is None else max(1.0, (end - first) / _ONE_DAY)
        kept = scores
        if len(scores) > MAX_SENTENCES:
            kept = np.random.default_rng(_SEED).choice(scores, MAX_SENTENCES, replace=False)
        return Population(kept, lowest, len(found) / share / days)


def labelled_sentences(
    connection: Connection, scorer_id: int, *, days: int = LABEL_DAYS, limit: int = MAX_LABELS
) -> list[tuple[str, TaughtSentence]]:
    """What people agreed on in the last days, with its app, newest first: at most ``limit`` sentences.

    A label belongs to the text: where the task was another scorer's, the score is that of this scorer for the same
    characters of the same answer, and the probability stays that of the task. Sentences that this scorer has no
    score for, or that nobody knows the probability of, are left out. The scores are the detector's, uncorrected.
    """
    rows = union_all(_own(scorer_id, days), _of_others(scorer_id, days)).subquery()
    newest = select(rows).order_by(rows.c.labelled_at.desc()).limit(limit)
    return [
        (
            row.app,
            TaughtSentence(
                row.score,
                known_terms(row.terms) or (),
                row.unsupported,
                row.probability,
                row.cluster,
                row.labelled_at.timestamp(),
                row.asked_at.timestamp(),
            ),
        )
        for row in connection.execute(newest)
    ]


def unanswered_sentences(
    connection: Connection, scorer_id: int, *, days: int = LABEL_DAYS, limit: int = MAX_UNANSWERED
) -> list[tuple[str, UnansweredSentence]]:
    """What was asked about in the last days and has no result: open, withdrawn, disputed, or nobody could tell.

    As with labels, sentences of other scorers' tasks count with this scorer's score of the same characters.
    """
    recent = _tasks.created_at >= func.now() - timedelta(days=days)
    asked = select(func.count()).select_from(review_tasks).join(review_sentences, _asked.task_pk == _tasks.id)
    part = math.ceil(connection.scalars(asked.where(recent)).one() / limit) or 1
    chosen = (recent, _tasks.id % part == 0)
    rows = union_all(_own_asked(scorer_id, part).where(*chosen), _asked_of_others(scorer_id, part).where(*chosen))
    return [
        (
            row.app,
            UnansweredSentence(row.score, known_terms(row.terms) or (), row.probability, row.asked_at.timestamp()),
        )
        for row in connection.execute(rows)
    ]


def _own_asked(scorer_id: int, part: int) -> Select[Any]:
    return _without_result(_asked, part).where(_tasks.scorer_id == scorer_id)


def _asked_of_others(scorer_id: int, part: int) -> Select[Any]:
    judged = and_(verdicts.c.interaction_pk == _tasks.interaction_pk, verdicts.c.scorer_id == scorer_id)
    found = _without_result(sentences.c, part).join(verdicts, judged).join(sentences, _same_text(_asked))
    return found.where(_tasks.scorer_id != scorer_id, sentences.c.score.is_not(None))


def _without_result(row: Columns, part: int) -> Select[Any]:
    settled = and_(_consensus.task_pk == _tasks.id, _consensus.sentence_index == _asked.sentence_index)
    return (
        select(
            _tasks.app.label("app"),
            (_asked.probability / part).label("probability"),
            _tasks.created_at.label("asked_at"),
            *_scored(row),
        )
        .select_from(review_tasks)
        .join(review_sentences, _asked.task_pk == _tasks.id)
        .outerjoin(results, settled)
        .where(_consensus.task_pk.is_(None))
    )


def _own(scorer_id: int, days: int) -> Select[Any]:
    """Labels of this scorer's tasks, which keep the score when retention has taken the answer."""
    return (
        select(*_facts(), *_scored(_consensus))
        .join(review_tasks, _tasks.id == _consensus.task_pk)
        .where(*_usable(days), _consensus.scorer_id == scorer_id, _consensus.score.is_not(None))
    )


def _of_others(scorer_id: int, days: int) -> Select[Any]:
    judged = and_(verdicts.c.interaction_pk == _consensus.interaction_pk, verdicts.c.scorer_id == scorer_id)
    return (
        select(*_facts(), *_scored(sentences.c))
        .join(review_tasks, _tasks.id == _consensus.task_pk)
        .join(verdicts, judged)
        .join(sentences, _same_text(_consensus))
        .where(*_usable(days), _consensus.scorer_id != scorer_id, sentences.c.score.is_not(None))
    )


def _same_text(asked: Columns) -> ColumnElement[bool]:
    return and_(
        sentences.c.verdict_id == verdicts.c.id,
        sentences.c.scored_at == verdicts.c.scored_at,
        sentences.c.start_char == asked.start_char,
        sentences.c.end_char == asked.end_char,
    )


def _scored(row: Columns) -> tuple[ColumnElement[Any], ...]:
    return detector_score(row).label("score"), stored_terms(row)


def _facts() -> tuple[ColumnElement[Any], ...]:
    # The tasks of two scorers about one answer are of one cluster.
    cluster = func.coalesce(_consensus.interaction_pk, -_consensus.task_pk)
    return (
        _consensus.app.label("app"),
        _consensus.unsupported.label("unsupported"),
        _consensus.selection_probability.label("probability"),
        cluster.label("cluster"),
        _consensus.time.label("labelled_at"),
        _tasks.created_at.label("asked_at"),
    )


def _usable(days: int) -> tuple[ColumnElement[bool], ...]:
    return (
        _consensus.selection_probability.is_not(None),
        _consensus.unsupported.is_not(None),
        _consensus.time >= func.now() - timedelta(days=days),
    )


def _scores(
    apps: Sequence[str], scorer_id: int, end: datetime, share: float, correction: Correction | None
) -> Select[Any]:
    # Pages of the table are drawn, not rows, so that the rest of it is not read.
    drawn = interactions.tablesample(func.system(100 * share), name="drawn", seed=literal(_SEED))
    source: FromClause = drawn if share < 1 else interactions
    judged = and_(verdicts.c.interaction_pk == source.c.id, verdicts.c.scorer_id == scorer_id)
    theirs = and_(sentences.c.verdict_id == verdicts.c.id, sentences.c.scored_at == verdicts.c.scored_at)
    return (
        select(sentences.c.verdict_id, corrected_score(sentences.c, correction).label("score"))
        .select_from(source.join(verdicts, judged).join(sentences, theirs))
        .where(*_window(source, apps, end), source.c.is_current, sentences.c.score.is_not(None))
        # Nothing is judged before it is stored; leaves the weeks before unread.
        .where(sentences.c.scored_at >= end - timedelta(days=TRAFFIC_DAYS))
    )


def _window(source: FromClause, apps: Sequence[str], end: datetime) -> tuple[ColumnElement[bool], ...]:
    logged = source.c
    theirs = logged.app == any_(literal(list(apps), ARRAY(Text)))
    return theirs, logged.stored_at >= end - timedelta(days=TRAFFIC_DAYS), logged.stored_at < end
