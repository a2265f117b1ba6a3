"""What is done to the workers and servers, and in which order: a function of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice

from tests.soak.fate import Point


class Blow(StrEnum):
    """One kind of thing that goes wrong."""

    KILL = "kill"
    TERM = "term"
    TERM_TWICE = "term_twice"
    STOP = "stop"
    BROKER = "broker_restart"
    DATABASE = "database_restart"
    SCALE = "scale"
    GROW = "grow"
    FREEZE = "freeze"
    BACKUP = "backup"
    RESTORE = "restore"


# Where a kill hits: at a random moment, and at each exact point in turn.
KILLS = ("anywhere", *Point)
# How a server goes down: in good order, and as in a crash.
GENTLY, HARD = "gently", "hard"
# What happens to the workers while the database is frozen: nothing, or one is told to end.
WAITED_OUT, WITH_TERM = "waited_out", "with_term"
ADDED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Step:
    """One blow.

    ``how`` is the point of a kill, how a server goes down, what happens while it is frozen, the number of workers to
    scale to, or that of the partitions that are added.
    """

    blow: Blow
    how: str = ""

    def __str__(self) -> str:
        return f"{self.blow}:{self.how}" if self.how else str(self.blow)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often each blow falls. ``workers`` are the sizes of the crew, the first of which it begins with.

    With ``restore`` a backup of the database is made after a third of the blows, and put back after two thirds.
    """

    kills: int
    terms: int
    stops: int
    broker_restarts: int
    database_restarts: int
    workers: tuple[int, ...]
    growths: int = 0
    freezes: int = 0
    restore: bool = False


def schedule(wanted: Wanted, seed: int) -> list[Step]:
    """All blows, shuffled; the sizes of the crew keep their order and come at even distances.

    One term in four, the second, sixth and so on, is followed by another one at once.
    """
    terms = [Blow.TERM_TWICE if number % 4 == 1 else Blow.TERM for number in range(wanted.terms)]
    blows = [
        *_each(Blow.KILL, wanted.kills, KILLS),
        *[Step(term) for term in terms],
        *[Step(Blow.STOP)] * wanted.stops,
        *_each(Blow.BROKER, wanted.broker_restarts, (GENTLY, HARD)),
        *_each(Blow.DATABASE, wanted.database_restarts, (HARD, GENTLY)),
        *[Step(Blow.GROW, str(ADDED_PARTITIONS))] * wanted.growths,
        *_each(Blow.FREEZE, wanted.freezes, (WITH_TERM, WAITED_OUT)),
    ]
    random.Random(seed).shuffle(blows)
    if wanted.restore:
        third = len(blows) // 3
        blows = [*blows[:third], Step(Blow.BACKUP), *blows[third : 2 * third], Step(Blow.RESTORE), *blows[2 * third :]]
    return _with_sizes(blows, wanted.workers[1:])


def _each(blow: Blow, times: int, ways: Iterable[str]) -> list[Step]:
    return [Step(blow, way) for way in islice(cycle(ways), times)]


def _with_sizes(blows: Sequence[Step], sizes: Sequence[int]) -> list[Step]:
    """The sizes after the first come at the ends of equal parts, so that a crew of one lasts for the first part."""
    merged = list(blows)
    for number, size in reversed(list(enumerate(sizes, start=1))):
        merged.insert(len(blows) * number // (len(sizes) + 1), Step(Blow.SCALE, str(size)))
    return merged
