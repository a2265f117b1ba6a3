"""A judgement that is said again: whether that is a repeat, or restores what was taken back meanwhile.

Rows are only added, and two rows of one judgement with the same words and time are one. So what is said again after
its withdrawal gets a time of its own, just behind what it undoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection, DateTime, Select, Text, and_, func, select

from schemas.review_label import LabelAction
from worker.store.bulk import Values, arrays, unrolled
from worker.store.label_rows import KEY, Draft, Judgement
from worker.store.tables import review_labels

_TICK = timedelta(microseconds=1)

_labels = review_labels.c


@dataclass(slots=True)
class History:
    """The rows of a judgement: what makes them the same as others, and the one that holds."""

    keys: set[Values] = field(default_factory=set)
    action: str | None = None
    # When it was said, by its own time or by its arrival.
    said_at: datetime | None = None
    is_timed: bool = False

    def add(self, key: Values, arrived_at: datetime) -> None:
        """Enter a row. Of two of the same time the later to be entered holds."""
        self.keys.add(key)
        *_, action, _, _, labelled_at = key
        said_at = labelled_at or arrived_at
        if self.said_at is None or said_at >= self.said_at:
            self.action, self.said_at, self.is_timed = action, said_at, labelled_at is not None

    def said_again_at(self, key: Values, now: datetime) -> datetime | None:
        """The time of a row that is there already and shall hold again; None if it stays a repeat.

        A label is restored unless its withdrawal says that it is later; a withdrawal only if it bears no time.
        """
        *_, action, _, _, labelled_at = key
        if self.said_at is None or action == self.action:
            return None
        if labelled_at is None:
            return max(now, self.said_at + _TICK)
        is_older = action == LabelAction.WITHDRAW or (self.is_timed and self.said_at > labelled_at)
        return None if is_older else self.said_at + _TICK


def histories_of(connection: Connection, drafts: Sequence[Draft]) -> tuple[dict[Judgement, History], datetime]:
    """What is stored of the judgements of the drafts, and the time of the transaction."""
    named = sorted({draft.judgement for draft in drafts})
    found: dict[Judgement, History] = {judgement: History() for judgement in named}
    for *key, received_at in connection.execute(_ask_rows(), arrays(("tool", "external_id"), named)):
        found[key[0], key[1]].add(tuple(key), received_at)
    return found, connection.scalars(select(func.now(type_=DateTime(timezone=True)))).one()


@cache
def _ask_rows() -> Select[Any]:
    rows = unrolled(tool=Text(), external_id=Text())
    same = and_(_labels.tool == rows.c.tool, _labels.external_id == rows.c.external_id)
    columns = (*(_labels[name] for name in KEY), _labels.received_at)
    return select(*columns).join(rows, same).order_by(_labels.id)


def restoring(drafts: Sequence[Draft], histories: dict[Judgement, History], now: datetime) -> Iterator[Draft]:
    """The drafts in their order, those that are said again with the time of that. Enters them in the histories."""
    for draft in drafts:
        history = histories[draft.judgement]
        again = history.said_again_at(draft.key, now) if draft.key in history.keys else None
        made = draft if again is None else draft.at(again)
        if made.key not in history.keys:
            history.add(made.key, now)
        yield made
