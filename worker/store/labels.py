"""What people said, as rows that are only ever added; and the tasks, brought up to date in the same transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Literal

from sqlalchemy import BigInteger, Connection, Integer, Row, Select, Text, and_, func, literal, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.sql.dml import ReturningInsert

from schemas.review_label import LabelAction, ReviewLabel
from worker.store.bulk import Values, arrays, insert_from_arrays, unrolled
from worker.store.tables import review_labels, review_tasks

LabelSource = Literal["topic", "file"]
"""Where the worker had a label from. What is entered by plain SQL comes in past the worker."""

Judgement = tuple[str, str]
"""Tool and external id."""

_labels = review_labels.c
# What makes two rows the same: the columns of uq_review_labels_repeat, first among those that are written.
_KEY = ("tool", "external_id", "action", "label", "detail", "labelled_at")
_PLACE = ("task_id", "app", "interaction_id", "revision", "sentence_index", "reviewer")
_COLUMNS = (*_KEY, *_PLACE, "note", "source")
_EARLY_TASKS_SINCE = timedelta(days=1)
# A label and its task may be written at the same moment, so that neither saw the other.
_EARLY_MARGIN = timedelta(minutes=1)


class LabelOutcome(StrEnum):
    """What became of a label. The last two are not stored; of a repeat the first is."""

    STORED = "stored"
    CORRECTED = "corrected"
    WITHDRAWN = "withdrawn"
    EARLY = "early"
    SUPERSEDED = "superseded"
    REPEATED = "repeated"
    NOTHING_TO_WITHDRAW = "nothing_to_withdraw"
    UNKNOWN_SENTENCE = "unknown_sentence"


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row to write for the label at ``position``."""

    position: int
    values: Values

    @property
    def key(self) -> Values:
        return self.values[: len(_KEY)]

    @property
    def judgement(self) -> Judgement:
        tool, external_id, *_ = self.values
        return tool, external_id


def unknown_sentences(connection: Connection, labels: Sequence[ReviewLabel]) -> set[int]:
    """The positions of the labels that are about no sentence with a score, of an answer that is known."""
    return {position for position, place in enumerate(_places(connection, labels)) if place == "unknown_sentence"}


def add_labels(
    connection: Connection, labels: Sequence[ReviewLabel], source: LabelSource, *, refuse_unknown: bool = True
) -> list[LabelOutcome]:
    """Store the labels in their order and settle the tasks that they touch; one outcome for each.

    With ``refuse_unknown`` false a label about an unknown sentence is stored like an early one.
    """
    places = _places(connection, labels)
    refused = {
        position
        for position, label in enumerate(labels)
        if refuse_unknown and label.action is LabelAction.LABEL and places[position] == "unknown_sentence"
    }
    before = _judgements(connection, labels)
    drafts = list(_drafts(connection, labels, refused, source))
    inserted = _insert(connection, drafts)
    outcomes = [
        LabelOutcome.UNKNOWN_SENTENCE if position in refused else LabelOutcome.NOTHING_TO_WITHDRAW
        for position in range(len(labels))
    ]
    touched: set[Judgement] = set()
    for draft in drafts:
        is_new = inserted[draft.key] > 0
        inserted[draft.key] -= is_new
        outcome = _outcome(labels[draft.position], places[draft.position], is_new, draft.judgement in before | touched)
        if is_new or outcomes[draft.position] is LabelOutcome.NOTHING_TO_WITHDRAW:
            outcomes[draft.position] = outcome
        if is_new:
            touched.add(draft.judgement)
    _settle_tasks_of(connection, touched)
    return outcomes


def rehearse_labels(connection: Connection, labels: Sequence[ReviewLabel]) -> list[LabelOutcome]:
    """What ``add_labels`` would make of them; nothing is kept."""
    trial = connection.begin_nested()
    outcomes = add_labels(connection, labels, "file")
    trial.rollback()
    return outcomes


def settle_early_labels(connection: Connection) -> int:
    """Settle the open tasks of the last day that had labels before they were made; return how many there are."""
    tasks, early = review_tasks.c, review_labels.c
    is_about = or_(
        early.task_id == tasks.task_id,
        and_(
            early.task_id.is_(None),
            early.app == tasks.app,
            early.interaction_id == tasks.interaction_id,
            func.coalesce(early.revision, 1) == tasks.revision,
        ),
    )
    came_first = early.received_at < tasks.created_at + _EARLY_MARGIN
    found = (
        select(tasks.id)
        .where(tasks.state == "open", tasks.round == 1, tasks.created_at > func.now() - _EARLY_TASKS_SINCE)
        .where(select(early.id).where(is_about, came_first).exists())
    )
    return _settle(connection, sorted(connection.scalars(found)))


# --- what is there ---


def _places(connection: Connection, labels: Sequence[ReviewLabel]) -> list[str]:
    names = ("position", *_PLACE[:-1])
    values = [
        (position, *(getattr(label, name) for name in _PLACE[:-1]))
        for position, label in enumerate(labels)
        if label.is_placed
    ]
    found = {row.position: row.place for row in connection.execute(_ask_places(), arrays(names, values))}
    return [found.get(position, "early") for position in range(len(labels))]


@cache
def _ask_places() -> Select[tuple[int, str]]:
    rows = unrolled(position=Integer(), **{name: _labels[name].type for name in _PLACE[:-1]})
    place = func.review_label_place(*(rows.c[name] for name in _PLACE[:-1]), type_=Text())
    return select(rows.c.position, place.label("place"))


def _judgements(connection: Connection, labels: Sequence[ReviewLabel]) -> set[Judgement]:
    """Those of the labels' judgements that have a row already."""
    named = sorted({(label.tool, label.external_id) for label in labels})
    found = connection.execute(_ask_judgements(), arrays(("tool", "external_id"), named))
    return {(row.tool, row.external_id) for row in found}


@cache
def _ask_judgements() -> Select[tuple[str, str]]:
    rows = unrolled(tool=Text(), external_id=Text())
    same = and_(_labels.tool == rows.c.tool, _labels.external_id == rows.c.external_id)
    return select(_labels.tool, _labels.external_id).join(rows, same).distinct()


def _in_force(connection: Connection, withdrawal: ReviewLabel) -> list[Row[Any]]:
    """The labels that hold of what a withdrawal without a place takes back."""
    named = withdrawal.external_id
    first_part = func.split_part(_labels.external_id, ":", 1)
    newest = (
        select(review_labels)
        .where(_labels.tool == withdrawal.tool, first_part == named.partition(":")[0])
        .where(or_(_labels.external_id == named, func.starts_with(_labels.external_id, f"{named}:")))
        .ext(distinct_on(_labels.external_id))
        .order_by(
            _labels.external_id, func.coalesce(_labels.labelled_at, _labels.received_at).desc(), _labels.id.desc()
        )
        .subquery()
    )
    return list(connection.execute(select(newest).where(newest.c.action == LabelAction.LABEL.value)))


# --- what is written ---


def _drafts(
    connection: Connection, labels: Sequence[ReviewLabel], refused: set[int], source: LabelSource
) -> Iterator[_Draft]:
    """The rows of each label. A withdrawal without a place has one for each judgement that it takes back.

    Not those that are given anew at the same time: a tool's update takes back all that it does not say again.
    """
    earlier: dict[Judgement, Values] = {}
    said_again = {(label.tool, label.external_id, label.labelled_at) for label in labels if label.is_placed}
    for position, label in enumerate(labels):
        if label.is_placed and position not in refused:
            place = tuple(getattr(label, name) for name in _PLACE)
            draft = _Draft(position, (*(getattr(label, name) for name in _KEY), *place, label.note, source))
            earlier[draft.judgement] = place
            yield draft
        elif not label.is_placed:
            for tool, external_id, place in _taken_back(connection, label, earlier):
                if (tool, external_id, label.labelled_at) not in said_again:
                    own = (tool, external_id, label.action, None, None, label.labelled_at)
                    yield _Draft(position, (*own, *place, label.note, source))


def _taken_back(
    connection: Connection, withdrawal: ReviewLabel, earlier: dict[Judgement, Values]
) -> Iterator[tuple[str, str, Values]]:
    named = withdrawal.external_id
    stored = {
        (row.tool, row.external_id): tuple(getattr(row, name) for name in _PLACE)
        for row in _in_force(connection, withdrawal)
    }
    for (tool, external_id), place in {**stored, **earlier}.items():
        if tool == withdrawal.tool and (external_id == named or external_id.startswith(f"{named}:")):
            yield tool, external_id, place


def _insert(connection: Connection, drafts: Sequence[_Draft]) -> Counter[Values]:
    """Add those rows that are not there yet; count the keys of those that were added.

    In the same order for everyone, so that two writers of the same labels cannot wait for each other. The sort keeps
    the order of one judgement's rows.
    """
    rows = [draft.values for draft in sorted(drafts, key=lambda draft: draft.judgement)]
    if not rows:
        return Counter()
    return Counter(tuple(row) for row in connection.execute(_insert_new(), arrays(_COLUMNS, rows)))


@cache
def _insert_new() -> ReturningInsert[Any]:
    insert = insert_from_arrays(review_labels, _COLUMNS).on_conflict_do_nothing()
    return insert.returning(*(_labels[name] for name in _KEY))


def _outcome(label: ReviewLabel, place: str, is_new: bool, is_known: bool) -> LabelOutcome:  # noqa: FBT001 - facts, not switches
    if not is_new:
        return LabelOutcome.REPEATED
    if label.action is LabelAction.WITHDRAW:
        return LabelOutcome.WITHDRAWN
    if is_known:
        return LabelOutcome.CORRECTED
    if place == "superseded":
        return LabelOutcome.SUPERSEDED
    return LabelOutcome.STORED if place == "known" else LabelOutcome.EARLY


# --- the tasks ---


def _settle_tasks_of(connection: Connection, judgements: set[Judgement]) -> None:
    """Settle the tasks that these judgements are or were about; a correction may have moved one to another task."""
    if judgements:
        named = arrays(("tool", "external_id"), sorted(judgements))
        _settle(connection, sorted(connection.scalars(_ask_tasks(), named)))


@cache
def _ask_tasks() -> Select[tuple[int]]:
    rows = unrolled(tool=Text(), external_id=Text())
    task = func.review_task_of(
        _labels.task_id, _labels.app, _labels.interaction_id, _labels.revision, type_=BigInteger()
    )
    same = and_(_labels.tool == rows.c.tool, _labels.external_id == rows.c.external_id)
    about = select(task.label("id")).select_from(review_labels).join(rows, same).distinct().subquery()
    return select(about.c.id).where(about.c.id.is_not(None))


def _settle(connection: Connection, tasks: Sequence[int]) -> int:
    """In the order of their ids: each is locked to the end, and everyone takes them so."""
    each = func.unnest(literal(list(tasks), ARRAY(BigInteger))).column_valued("task")
    return len(connection.execute(select(func.settle_review_task(each))).all()) if tasks else 0
