"""The tree that the steps of a trace make, whatever is missing and whatever they say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from schemas.traces.step import Step, StepKind
from schemas.traces.strays import chains_of_strays


class Detail(IntEnum):
    """How much a step says of what it retrieved."""

    NOTHING = 0
    NAMES = 1
    TEXTS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step stands. Steps are named by their positions in ``Tree.steps``.

    ``top`` is the uppermost step above it, and ``chain`` the outermost chain, itself included; ``question`` is the
    uppermost question on the way down to it. ``covered`` is what retrievers above it say of what was retrieved.
    """

    top: int
    chain: int | None
    question: str | None
    covered: Detail


@dataclass(frozen=True, slots=True)
class Tree:
    """The steps in order of time, and their places. ``is_whole``: all lie below roots, and the roots are over."""

    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    is_whole: bool


RETRIEVING = {StepKind.RETRIEVER, StepKind.RERANKER}
"""Kinds whose documents are what was found."""
# Kinds whose question is their own: a query, a prompt.
_ASKED_APART = {*RETRIEVING, StepKind.LLM}


def grown(steps: Iterable[Step]) -> Tree:
    """Return the tree of steps of which each is there once. Takes linear time but for sorting, however deep it is.

    A step whose parent was not seen, and the earliest of steps that lie below each other in a circle, hang below the
    outermost chain that they belong to, if that is clear; else they are tops.
    """
    timed = tuple(sorted(steps, key=_by_time))
    parents = _parents(timed)
    cuts = _circle_cuts(parents)
    for cut in cuts:
        parents[cut] = None
    is_whole = _is_whole(timed, parents) and not cuts
    places = _places(timed, parents)
    strays = {place for place, step in enumerate(timed) if parents[place] is None and _is_stray(step)}
    if strays:
        chains = [place for place, at in enumerate(places) if at.chain == place and at.top not in strays]
        for stray, chain in chains_of_strays(timed, strays, chains).items():
            parents[stray] = chain
        places = _places(timed, parents)
    return Tree(timed, places, is_whole)


def detail_of(step: Step) -> Detail:
    """Return how much a step says of what it retrieved."""
    if any(document.text is not None for document in step.documents or ()):
        return Detail.TEXTS
    return Detail.NAMES if step.documents else Detail.NOTHING


def _by_time(step: Step) -> tuple[bool, int, str]:
    """What steps are sorted by: when they began, unknown times last; of two at once the id decides."""
    return step.begun_ns is None, step.begun_ns or 0, step.id


def _parents(steps: Sequence[Step]) -> list[int | None]:
    positions = {step.id: position for position, step in enumerate(steps)}
    return [None if step.parent is None else positions.get(step.parent) for step in steps]


def _circle_cuts(parents: list[int | None]) -> list[int]:
    """The first step of each circle. Every step is walked over once: where a walk has been, another ends."""
    walks = [-1] * len(parents)
    cuts = []
    for start in range(len(parents)):
        step: int | None = start
        while step is not None and walks[step] < 0:
            walks[step] = start
            step = parents[step]
        if step is not None and walks[step] == start:
            cuts.append(min(_circle(parents, step)))
    return cuts


def _circle(parents: list[int | None], start: int) -> Iterator[int]:
    step: int | None = start
    while step is not None:
        yield step
        step = parents[step]
        if step == start:
            return


def _downward(parents: list[int | None]) -> list[int]:
    """All steps, each behind its parent."""
    below: list[list[int]] = [[] for _ in parents]
    order: list[int] = []
    for step, parent in enumerate(parents):
        (order if parent is None else below[parent]).append(step)
    for step in order:
        order.extend(below[step])
    return order


def _is_stray(step: Step) -> bool:
    """Whether a step that hangs below none says that something of its process lies above it."""
    return step.parent is not None and not step.is_root


def _places(steps: Sequence[Step], parents: list[int | None]) -> tuple[Place, ...]:
    places: dict[int, Place] = {}
    for step in _downward(parents):
        parent = parents[step]
        places[step] = _place(step, steps, None if parent is None else (steps[parent], places[parent]))
    return tuple(places[step] for step in range(len(steps)))


def _place(position: int, steps: Sequence[Step], above: tuple[Step, Place] | None) -> Place:
    step = steps[position]
    own_chain = position if step.kind is StepKind.CHAIN else None
    own_question = None if step.kind in _ASKED_APART else step.question
    if above is None:
        return Place(position, own_chain, own_question, Detail.NOTHING)
    parent, place = above
    covered = max(place.covered, detail_of(parent)) if parent.kind in RETRIEVING else place.covered
    return Place(
        top=place.top,
        chain=own_chain if place.chain is None else place.chain,
        question=place.question or own_question,
        covered=covered,
    )


def _is_whole(steps: Sequence[Step], parents: list[int | None]) -> bool:
    roots = [step for step in steps if step.is_root]
    return (
        bool(roots)
        and all(root.has_ended for root in roots)
        and all(parent is not None or step.is_root for step, parent in zip(steps, parents, strict=True))
    )
