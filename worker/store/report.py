"""What a report shows of one app and scorer in a period."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, TableClause, and_, column, func, or_, select, table

from worker.rules.calibration.labels import Floats, LabelledSentence, Unanswered
from worker.rules.refit.correction import Correction
from worker.rules.scale import labelled_under, unanswered_under
from worker.store.corrected import corrected_score
from worker.store.evidence import labelled_sentences, unanswered_sentences
from worker.store.queue_days import queue_days
from worker.store.report_contents import Change, Found, LanguageCount, Lowest, ReviewerAgreement, Run, Subject, Totals
from worker.store.repository import Repository
from worker.store.tables import INTERACTION_TIME, interactions, sentences, verdicts

LOWEST_SENTENCES = 10
# Of more answers the scores of a share are read, chosen by their ids.
MAX_ANSWERS = 20_000

_HASHES = 2**20


def _view(name: str, *columns: str) -> TableClause:
    return table(name, *(column(one) for one in columns))


_CHANGE = (
    "time",
    "until",
    "threshold_version",
    "flag_below",
    "attribute_below",
    "learned_from",
    "reason",
    "activated_by",
    "note",
)
_RUN = (
    "time",
    "outcome",
    "reason",
    "in_force",
    "threshold_version",
    "n_labels",
    "n_unsupported",
    "recall",
    "recall_low",
    "recall_high",
    "precision",
    "precision_low",
    "precision_high",
    "psi",
    "refit",
    "auc_in_force",
    "auc_learned",
    "auc_standard_error",
    "auc_lexical",
)
_LOWEST = (
    "time",
    "interaction_id",
    "sentence_index",
    "score",
    "unsupported_probability",
    "text",
    "question",
    "supporting_passage_id",
    "supporting_passage_text",
    "supporting_passage_ids",
    "attribution",
    "start_char",
    "worst_start",
    "worst_end",
)
_history = _view("v_threshold_history", *_CHANGE, "app", "scorer_id")
_runs = _view("v_calibration_runs", *_RUN, "app", "scorer_id")
_flagged = _view("v_flagged_sentences", *_LOWEST, "app", "scorer_id", "interaction_pk")
_agreement = _view("v_reviewer_agreement", "app", "reviewer_a", "reviewer_b", "sentences", "alpha")


class Reports(Repository):
    """What reports show."""

    def read(self, subject: Subject, correction: Correction | None = None) -> Found:
        """Read it all, in the state of one moment, with scores and labels under a correction. Raises StoreError."""
        with self.database.read(one_moment=True) as connection:
            return _found(connection, subject, correction)


def _found(connection: Connection, subject: Subject, correction: Correction | None) -> Found:
    totals = _totals(connection, subject)
    return Found(
        totals=totals,
        languages=_languages(connection, subject),
        scores=_scores(connection, subject, totals.answers, correction),
        labels=_labelled(connection, subject, correction),
        unanswered=_unanswered(connection, subject, correction),
        days=queue_days(connection, subject.app, subject.scorer_id, subject.since, subject.until),
        changes=_changes(connection, subject),
        runs=_calibrations(connection, subject),
        lowest=_lowest(connection, subject),
        agreement=_agreed(connection, subject.app),
    )


def _answers(subject: Subject, *wanted: ColumnElement[Any]) -> Select[Any]:
    judged = and_(verdicts.c.interaction_pk == interactions.c.id, verdicts.c.scorer_id == subject.scorer_id)
    return (
        select(*wanted)
        .select_from(interactions.join(verdicts, judged))
        .where(interactions.c.app == subject.app, interactions.c.is_current)
        .where(subject.since <= INTERACTION_TIME, subject.until > INTERACTION_TIME)
    )


def _totals(connection: Connection, subject: Subject) -> Totals:
    counted = _answers(
        subject,
        func.count(),
        func.count(verdicts.c.skip_reason),
        *(func.coalesce(func.sum(verdicts.c[name]), 0) for name in ("n_sentences", "n_scored", "n_flagged")),
    )
    return Totals(*connection.execute(counted).one())


def _languages(connection: Connection, subject: Subject) -> tuple[LanguageCount, ...]:
    told = (verdicts.c.language, verdicts.c.language_supported)
    counted = _answers(subject, *told, func.count()).group_by(*told).order_by(func.count().desc(), *told)
    return tuple(LanguageCount(*row) for row in connection.execute(counted))


def _scores(connection: Connection, subject: Subject, answers: int, correction: Correction | None) -> Floats:
    read = _HASHES * min(1.0, MAX_ANSWERS / max(answers, 1))
    chosen = _answers(subject, verdicts.c.id, verdicts.c.scored_at).where(
        func.mod(func.abs(func.hashint8(interactions.c.id).cast(sentences.c.verdict_id.type)), _HASHES) < read
    )
    theirs = chosen.subquery()
    score = corrected_score(sentences.c, correction)
    found = (
        select(score)
        .join(theirs, and_(sentences.c.verdict_id == theirs.c.id, sentences.c.scored_at == theirs.c.scored_at))
        .where(score.is_not(None))
    )
    return np.fromiter(connection.scalars(found), dtype=np.float64)


def _labelled(connection: Connection, subject: Subject, correction: Correction | None) -> tuple[LabelledSentence, ...]:
    days = (datetime.now(UTC) - subject.since).days + 1
    first, last = subject.since.timestamp(), subject.until.timestamp()
    theirs = [
        label
        for app, label in labelled_sentences(connection, subject.scorer_id, days=days)
        if app == subject.app and first <= (label.asked_at or label.labelled_at) < last
    ]
    return tuple(labelled_under(theirs, correction))


def _unanswered(connection: Connection, subject: Subject, correction: Correction | None) -> tuple[Unanswered, ...]:
    """What was asked about in the period and has no result."""
    days = (datetime.now(UTC) - subject.since).days + 1
    first, last = subject.since.timestamp(), subject.until.timestamp()
    theirs = [
        one
        for app, one in unanswered_sentences(connection, subject.scorer_id, days=days)
        if app == subject.app and first <= one.asked_at < last
    ]
    return tuple(unanswered_under(theirs, correction))


def _changes(connection: Connection, subject: Subject) -> tuple[Change, ...]:
    found = (
        select(*(_history.c[name] for name in _CHANGE))
        .where(or_(_history.c.app == subject.app, _history.c.app.is_(None)))
        .where(_history.c.scorer_id == subject.scorer_id, _history.c.time < subject.until)
        .order_by(_history.c.time.desc())
    )
    return tuple(Change(*row) for row in connection.execute(found))


def _calibrations(connection: Connection, subject: Subject) -> tuple[Run, ...]:
    found = (
        select(*(_runs.c[name] for name in _RUN))
        .where(_runs.c.app == subject.app, _runs.c.scorer_id == subject.scorer_id)
        .where(_runs.c.time >= subject.since, _runs.c.time < subject.until)
        .order_by(_runs.c.time.desc())
    )
    return tuple(Run(*row) for row in connection.execute(found))


def _lowest(connection: Connection, subject: Subject) -> tuple[Lowest, ...]:
    """The lowest sentences are among those of as many answers, the ones with the lowest sentence."""
    answers = (
        _answers(subject, interactions.c.interaction_id)
        .where(verdicts.c.n_flagged > 0)
        .order_by(verdicts.c.lowest_score, interactions.c.id)
        .limit(LOWEST_SENTENCES)
    )
    found = (
        select(*(_flagged.c[name] for name in _LOWEST))
        .where(_flagged.c.app == subject.app, _flagged.c.scorer_id == subject.scorer_id)
        .where(_flagged.c.interaction_id.in_(list(connection.scalars(answers))))
        .order_by(_flagged.c.score, _flagged.c.interaction_pk, _flagged.c.sentence_index)
        .limit(LOWEST_SENTENCES)
    )
    return tuple(Lowest(*row) for row in connection.execute(found))


def _agreed(connection: Connection, app: str) -> ReviewerAgreement | None:
    found = select(_agreement.c.sentences, _agreement.c.alpha).where(
        _agreement.c.app == app, _agreement.c.reviewer_a.is_(None)
    )
    row = connection.execute(found).one_or_none()
    return None if row is None else ReviewerAgreement(*row)
