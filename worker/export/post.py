"""A request that brings results to a system, and what its answer means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from worker.rules.exports import AnswerResults


@dataclass(frozen=True, slots=True)
class Post:
    """One POST, which brings the results of these ids.

    ``taken_too`` are statuses beside 200 to 299 which say that the results are there.
    """

    ids: frozenset[str]
    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    taken_too: tuple[HTTPStatus, ...] = ()


JSON = {"Content-Type": "application/json"}


class Destination(Protocol):
    """A system that takes results."""

    def posts(self, answer: AnswerResults) -> Iterator[Post]:
        """The requests that bring them there, in order."""
        ...

    def lookup(self, answer: AnswerResults) -> Lookup | None:
        """How to ask what is there already, for a system in which a repeat would not replace what it repeats."""
        ...


@dataclass(frozen=True, slots=True)
class Lookup:
    """One GET, and what makes of the answer's body the ids of the results that are there."""

    url: str = field(repr=False)
    read: Callable[[bytes], frozenset[str]]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
