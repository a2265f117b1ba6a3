"""How many dead letters there are of each kind, since when, and one to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from schemas.reject_reason import RejectReason
from worker.broker.sink import Place
from worker.dlq.letters import Letter, Stranger

# Details name places in a message, so a producer can make up as many as it likes.
MAX_KINDS = 1000
OTHER_DETAILS = "(other details)"

LetterKind = tuple[RejectReason, str]


@dataclass(slots=True)
class Count:
    """The letters of one reason and detail: how many, from when to when, and where the last of them lies."""

    letters: int
    first: datetime
    last: datetime
    example: Place


def summarize(found: Iterable[Letter | Stranger]) -> tuple[list[tuple[LetterKind, Count]], int]:
    """Count by reason and detail, the most frequent first; and how many places hold what is no dead letter.

    Beyond MAX_KINDS, details of a reason are put together.
    """
    counts: dict[LetterKind, Count] = {}
    strangers = 0
    for one in found:
        if isinstance(one, Stranger):
            strangers += one.next_offset - one.offset
        else:
            _count(one, counts)
    return sorted(counts.items(), key=lambda item: (-item[1].letters, item[0])), strangers


def _count(letter: Letter, counts: dict[LetterKind, Count]) -> None:
    rejected_at = letter.facts.rejected_at
    count = counts.setdefault(_kind(letter, counts), Count(0, rejected_at, rejected_at, letter.place))
    count.letters += 1
    count.first = min(count.first, rejected_at)
    if rejected_at >= count.last:
        count.last, count.example = rejected_at, letter.place


def _kind(letter: Letter, counts: Mapping[LetterKind, Count]) -> LetterKind:
    kind = (letter.facts.reason, letter.facts.detail)
    return kind if kind in counts or len(counts) < MAX_KINDS else (letter.facts.reason, OTHER_DETAILS)
