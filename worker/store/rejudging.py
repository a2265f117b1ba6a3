"""Judging stored answers again by the version in force, from what is stored of their sentences, without the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Row,
    Select,
    Update,
    and_,
    any_,
    cast,
    exists,
    literal,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from worker.rules.refit.correction import TERMS
from worker.rules.verdict import Threshold, Verdict, judge
from worker.store.bulk import Values, arrays, parts, update_from_arrays
from worker.store.corrected import detector_score
from worker.store.repository import Repository, writes
from worker.store.rescore_jobs import HistoryCursor
from worker.store.tables import INTERACTION_TIME, attribution_jobs, interactions, sentences, verdicts
from worker.store.threshold_versions import version_in_force

# The time finds the week in which a sentence lies.
_SENTENCE_KEYS = ("verdict_id", "sentence_index", "scored_at")
_SENTENCE_COLUMNS = ("score", "correction", "flagged", "unsupported_probability")
_VERDICT_KEYS = ("id",)
_VERDICT_COLUMNS = ("threshold_id", "lowest_score", "n_flagged")

_logged = interactions.c
_judged = verdicts.c
_found = sentences.c


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A step through an app's answers that were judged by another version: how many are judged anew, and what changed.

    Those ``without_terms`` stay as they are: nobody knows what they score under the correction in force. ``end`` is
    where the next step begins, None after the last.
    """

    answers: int
    without_terms: int
    newly_flagged: int
    no_longer_flagged: int
    end: HistoryCursor | None


@dataclass(frozen=True, slots=True)
class _Change:
    """An answer's verdict as it is from now on, with the rows of its sentences that have a score."""

    stored: Row[Any]
    rows: Sequence[Row[Any]]
    verdict: Verdict


class Rejudging(Repository):
    """Verdicts of stored answers by another version than they were given under."""

    @writes
    def step(
        self,
        connection: Connection,
        app: str,
        scorer_id: int,
        since: datetime,
        before: HistoryCursor | None,
        *,
        limit: int,
        only_count: bool = False,
    ) -> Rejudged:
        """Judge the next ``limit`` of the app's current answers anew, newest first: those that this scorer judged last.

        What is judged by the version in force already is passed over, so that this may be broken off and begun again.
        An answer that is attributed now and was not gets its job. Review tasks, labels and second opinions stay.
        ``only_count`` writes nothing.
        """
        version = version_in_force(connection, app, scorer_id)
        if version is None:
            return Rejudged(0, 0, 0, 0, None)
        threshold = Threshold(**{name: getattr(version, name) for name in Threshold.__dataclass_fields__})
        found = connection.execute(_step(app, scorer_id, threshold.id, since, before, limit, lock=not only_count)).all()
        theirs = _sentences(connection, found)
        changes = [
            _Change(stored, theirs[stored.id], _verdict(theirs[stored.id], threshold))
            for stored in found
            if threshold.correction is None or all(_terms(row) is not None for row in theirs[stored.id])
        ]
        if not only_count:
            _write(connection, scorer_id, changes)
        flags = [
            (row.flagged, flagged)
            for change in changes
            for row, flagged in zip(change.rows, change.verdict.flagged, strict=True)
        ]
        end = HistoryCursor(found[-1].time, found[-1].interaction_pk) if len(found) == limit else None
        return Rejudged(
            len(changes), len(found) - len(changes), flags.count((False, True)), flags.count((True, False)), end
        )


def _step(
    app: str,
    scorer_id: int,
    threshold_id: int,
    since: datetime,
    before: HistoryCursor | None,
    limit: int,
    *,
    lock: bool,
) -> Select[Any]:
    others = verdicts.alias("others").c
    later = (others.interaction_pk == _judged.interaction_pk, others.id > _judged.id)
    step = (
        select(
            _judged.id,
            _judged.scored_at,
            _judged.attributed_at,
            _logged.id.label("interaction_pk"),
            INTERACTION_TIME.label("time"),
        )
        .join(interactions, _logged.id == _judged.interaction_pk)
        .where(_logged.app == app, _logged.is_current, since <= INTERACTION_TIME)
        .where(_judged.scorer_id == scorer_id, _judged.n_scored > 0)
        .where(_judged.threshold_id.is_distinct_from(threshold_id), ~exists().where(*later))
    )
    if before is not None:
        step = step.where(tuple_(INTERACTION_TIME, _logged.id) < tuple_(before.time, before.interaction_pk))
    step = step.order_by(INTERACTION_TIME.desc(), _logged.id.desc()).limit(limit)
    return step.with_for_update(of=verdicts, key_share=True) if lock else step


def _sentences(connection: Connection, found: Sequence[Row[Any]]) -> dict[int, list[Row[Any]]]:
    """The scored sentences of each verdict, in order, with the detector's own scores."""
    wanted = any_(literal([row.id for row in found], ARRAY(BigInteger)))
    listed = (
        select(
            _found.verdict_id,
            _found.sentence_index,
            _found.scored_at,
            _found.flagged,
            detector_score(_found).label("score"),
            cast(_found.terms, ARRAY(Double)).label("terms"),
        )
        .join(verdicts, and_(_judged.id == _found.verdict_id, _judged.scored_at == _found.scored_at))
        .where(_judged.id == wanted, _found.score.is_not(None))
        .order_by(_found.verdict_id, _found.sentence_index)
    )
    theirs: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(listed):
        theirs[row.verdict_id].append(row)
    return theirs


def _verdict(rows: Sequence[Row[Any]], threshold: Threshold) -> Verdict:
    return judge([row.score for row in rows], threshold, [_terms(row) for row in rows])


def _terms(row: Row[Any]) -> tuple[float, ...] | None:
    """None where there are none, or not those of this release."""
    return tuple(row.terms) if row.terms is not None and len(row.terms) == len(TERMS) else None


def _write(connection: Connection, scorer_id: int, changes: Sequence[_Change]) -> None:
    found = [values for change in changes for values in _sentence_values(change)]
    for part in parts(found):
        connection.execute(_update_sentences(), arrays((*_SENTENCE_KEYS, *_SENTENCE_COLUMNS), part))
    judged = [_verdict_values(change) for change in changes]
    for part in parts(judged):
        connection.execute(_update_verdicts(), arrays((*_VERDICT_KEYS, *_VERDICT_COLUMNS), part))
    jobs = [
        {"verdict_id": change.stored.id, "scorer_id": scorer_id, "priority": change.verdict.lowest_score}
        for change in changes
        if change.verdict.wants_attribution and change.stored.attributed_at is None
    ]
    if jobs:
        connection.execute(insert(attribution_jobs).on_conflict_do_nothing(), jobs)


@cache
def _update_sentences() -> Update:
    return update_from_arrays(sentences, _SENTENCE_KEYS, _SENTENCE_COLUMNS)


@cache
def _update_verdicts() -> Update:
    return update_from_arrays(verdicts, _VERDICT_KEYS, _VERDICT_COLUMNS)


def _sentence_values(change: _Change) -> list[Values]:
    """In the order of _SENTENCE_KEYS and _SENTENCE_COLUMNS."""
    verdict = change.verdict
    return [
        (row.verdict_id, row.sentence_index, row.scored_at, score, correction, flagged, probability)
        for row, score, correction, flagged, probability in zip(
            change.rows, verdict.scores, verdict.corrections, verdict.flagged, verdict.probabilities, strict=True
        )
    ]


def _verdict_values(change: _Change) -> Values:
    """In the order of _VERDICT_KEYS and _VERDICT_COLUMNS."""
    verdict = change.verdict
    return (change.stored.id, verdict.threshold.id, verdict.lowest_score, verdict.flagged.count(True))
