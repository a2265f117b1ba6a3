"""Labels as rows that are only ever added: what is there already, and what each label adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

from sqlalchemy import Connection, Integer, Row, Select, Text, func, or_, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.sql.dml import ReturningInsert

from schemas.review_label import LabelAction, ReviewLabel
from worker.store.bulk import Values, arrays, insert_from_arrays, unrolled
from worker.store.tables import review_labels

LabelSource = Literal["topic", "file", "page"]
"""Where the worker had a label from. What is entered by plain SQL comes in past the worker."""

Judgement = tuple[str, str]
"""Tool and external id."""

_labels = review_labels.c
# What makes two rows the same: the columns of uq_review_labels_repeat, first among those that are written.
KEY = ("tool", "external_id", "action", "label", "detail", "labelled_at")
_PLACE = ("task_id", "app", "interaction_id", "revision", "sentence_index", "reviewer")
_COLUMNS = (*KEY, *_PLACE, "note", "source")


@dataclass(frozen=True, slots=True)
class Draft:
    """A row to write for the label at ``position``."""

    position: int
    values: Values
    is_restored: bool = False

    def at(self, labelled_at: datetime) -> Draft:
        """The same, said again at this time."""
        values = (*self.values[: len(KEY) - 1], labelled_at, *self.values[len(KEY) :])
        return Draft(self.position, values, is_restored=True)

    @property
    def key(self) -> Values:
        """What makes another row the same."""
        return self.values[: len(KEY)]

    @property
    def judgement(self) -> Judgement:
        """What the row is a word on."""
        tool, external_id, *_ = self.values
        return tool, external_id


# --- what is there ---


def places_of(connection: Connection, labels: Sequence[ReviewLabel]) -> list[str]:
    """Of each label whether its sentence is known, unknown_sentence, of a superseded revision or early."""
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


def drafts_of(
    connection: Connection, labels: Sequence[ReviewLabel], refused: set[int], source: LabelSource
) -> Iterator[Draft]:
    """The rows of each label. A withdrawal without a place has one for each judgement that it takes back.

    Not those that are given anew behind it at the same time: a tool's update takes back all that it does not say again.
    """
    earlier: dict[Judgement, Values] = {}
    said_last = {
        (label.tool, label.external_id, label.labelled_at): position
        for position, label in enumerate(labels)
        if label.is_placed and position not in refused
    }
    for position, label in enumerate(labels):
        if label.is_placed and position not in refused:
            place = tuple(getattr(label, name) for name in _PLACE)
            draft = Draft(position, (*(getattr(label, name) for name in KEY), *place, label.note, source))
            earlier[draft.judgement] = place
            yield draft
        elif not label.is_placed and position not in refused:
            for tool, external_id, place in _taken_back(connection, label, earlier):
                if said_last.get((tool, external_id, label.labelled_at), -1) < position:
                    own = (tool, external_id, label.action, None, None, label.labelled_at)
                    yield Draft(position, (*own, *place, label.note, source))


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


def insert_drafts(connection: Connection, drafts: Sequence[Draft]) -> Counter[Values]:
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
    return insert.returning(*(_labels[name] for name in KEY))
