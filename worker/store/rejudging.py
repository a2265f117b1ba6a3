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
    Row,
    Select,
    Update,
    and_,
    any_,
    exists,
    literal,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from worker.rules.verdict import Threshold, Verdict, judge
from worker.store.bulk import Values, arrays, parts, update_from_arrays
from worker.store.corrected import detector_score, known_terms, stored_terms
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
    """A step through an app's answers: how many were judged by another version and are judged anew, and what changed.

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

    @property
    def flags(self) -> list[tuple[bool, bool | None]]:
        """Of each sentence the flag before and from now on."""
        return [(row.flagged, flagged) for row, flagged in zip(self.rows, self.verdict.flagged, strict=True)]


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
        """Go through the next ``limit`` of the app's current answers, newest first, and judge anew what is to be.

        That is what this scorer judged last, and by another version than is in force, so that all may be broken off and
        begun again. An answer that is attributed now and was not gets its job. Review tasks, labels and second opinions
        stay. ``only_count`` writes nothing.
        """
        version = version_in_force(connection, app, scorer_id)
        if version is None:
            return Rejudged(0, 0, 0, 0, None)
        threshold = Threshold(**{name: getattr(version, name) for name in Threshold.__dataclass_fields__})
        passed = connection.execute(_passed(app, since, before, limit)).all()
        pks = [row.id for row in passed]
        wanted = _judged_otherwise(pks, scorer_id, threshold.id, lock=not only_count)
        found = connection.execute(wanted).all()
        changes = _changes(connection, found, threshold)
        if not only_count:
            _write(connection, scorer_id, changes)
        flags = [flags for change in changes for flags in change.flags]
        return Rejudged(
            answers=len(changes),
            without_terms=len(found) - len(changes),
            newly_flagged=flags.count((False, True)),
            no_longer_flagged=flags.count((True, False)),
            end=HistoryCursor(passed[-1].time, passed[-1].id) if len(passed) == limit else None,
        )


def _changes(connection: Connection, found: Sequence[Row[Any]], threshold: Threshold) -> list[_Change]:
    """Of the verdicts those whose sentences all have a score under the threshold's correction."""
    theirs = _sentences(connection, found)
    return [
        _Change(stored, rows, _verdict(rows, threshold))
        for stored in found
        if (rows := theirs[stored.id])
        and (threshold.correction is None or all(known_terms(row.terms) is not None for row in rows))
    ]


def _passed(app: str, since: datetime, before: HistoryCursor | None, limit: int) -> Select[Any]:
    """The app's next current answers, whatever they were judged by, so that no statement looks for long."""
    passed = select(_logged.id, INTERACTION_TIME.label("time"))
    passed = passed.where(_logged.app == app, _logged.is_current, since <= INTERACTION_TIME)
    if before is not None:
        passed = passed.where(tuple_(INTERACTION_TIME, _logged.id) < tuple_(before.time, before.interaction_pk))
    return passed.order_by(INTERACTION_TIME.desc(), _logged.id.desc()).limit(limit)


def _judged_otherwise(
    interaction_pks: Sequence[int], scorer_id: int, threshold_id: int, *, lock: bool
) -> Select[tuple[int, datetime | None]]:
    """The last verdicts of these answers that are this scorer's and of another version."""
    others = verdicts.alias("others").c
    later = (others.interaction_pk == _judged.interaction_pk, others.id > _judged.id)
    found = (
        select(_judged.id, _judged.attributed_at)
        .where(_judged.interaction_pk == any_(literal(list(interaction_pks), ARRAY(BigInteger))))
        .where(_judged.scorer_id == scorer_id, _judged.n_scored > 0)
        .where(_judged.threshold_id.is_distinct_from(threshold_id), ~exists().where(*later))
        # In one order, so that two of these wait for each other in one direction only.
        .order_by(_judged.id)
    )
    return found.with_for_update(of=verdicts, key_share=True) if lock else found


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
            stored_terms(_found),
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
    return judge([row.score for row in rows], threshold, [known_terms(row.terms) for row in rows])


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
