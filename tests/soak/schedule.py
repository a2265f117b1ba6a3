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


# Where a kill hits: at a random moment, and at each exact point in turn.
KILLS = ("anywhere", *Point)
# How a server goes down: in good order, and as in a crash.
GENTLY, HARD = "gently", "hard"


@dataclass(frozen=True, slots=True)
class Step:
    """One blow. ``how`` is the point of a kill, how a server goes down, or the number of workers to scale to."""

    blow: Blow
    how: str = ""

    def __str__(self) -> str:
        return f"{self.blow}:{self.how}" if self.how else str(self.blow)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often each blow falls. ``workers`` are the sizes of the crew, the first of which it begins with."""

    kills: int
    terms: int
    stops: int
    broker_restarts: int
    database_restarts: int
    workers: tuple[int, ...]


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
    ]
    random.Random(seed).shuffle(blows)
    return _with_sizes(blows, wanted.workers[1:])


def _each(blow: Blow, times: int, ways: Iterable[str]) -> list[Step]:
    return [Step(blow, way) for way in islice(cycle(ways), times)]


def _with_sizes(blows: Sequence[Step], sizes: Sequence[int]) -> list[Step]:
    """The sizes after the first come at the ends of equal parts, so that a crew of one lasts for the first part."""
    merged = list(blows)
    for number, size in reversed(list(enumerate(sizes, start=1))):
        merged.insert(len(blows) * number // (len(sizes) + 1), Step(Blow.SCALE, str(size)))
    return merged
