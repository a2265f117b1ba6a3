"""The parts of a trace of which each makes an exchange: what one chain, and all that lies below it, did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.traces.step import Step
from schemas.traces.tree import RETRIEVING, Detail, Tree, detail_of


@dataclass(frozen=True, slots=True)
class Part:
    """Steps that belong together, in order of time.

    ``root`` is the chain above all of them, None where none was seen; ``top`` is the uppermost step of the trace above
    them. ``found`` are those whose documents count, at least one. ``question`` is the uppermost on the way down to
    what was found. ``is_severed``: something of this process lies above the top, and was not seen. ``is_joined``:
    there is nothing else in the trace that could belong to it.
    """

    root: Step | None
    top: Step
    steps: tuple[Step, ...]
    found: tuple[Step, ...]
    question: str | None
    is_severed: bool
    is_joined: bool = False

    @property
    def first(self) -> Step:
        """The step that stands for the part."""
        return self.root or self.found[0]


def parts_of(tree: Tree) -> Iterator[Part]:
    """Give the parts in which something was retrieved, in order of time: of each outermost chain what lies below it.

    What lies below no chain is a part without a root.
    """
    members: dict[int | None, list[int]] = {}
    for position, place in enumerate(tree.places):
        members.setdefault(place.chain, []).append(position)
    for root, positions in members.items():
        found = _found(tree, positions)
        if found:
            yield _part(tree, root, positions, found)


def joined(tree: Tree, parts: list[Part], apart: list[Part]) -> Part:
    """Return parts as one, with all of the trace that does not lie in those that are ``apart``."""
    taken = {step.id for part in apart for step in part.steps}
    found = {step.id for part in parts for step in part.found}
    steps = tuple(step for step in tree.steps if step.id not in taken)
    return Part(
        root=parts[0].root if len(parts) == 1 else None,
        top=parts[0].top,
        steps=steps,
        found=tuple(step for step in steps if step.id in found),
        question=next((part.question for part in parts if part.question), None),
        is_severed=any(part.is_severed for part in parts),
        is_joined=True,
    )


def _found(tree: Tree, positions: list[int]) -> list[int]:
    """The retrieving steps that no outer one tells as much of; where none tells, the first that kept documents."""
    retrieving = [
        position
        for position in positions
        if tree.steps[position].kind in RETRIEVING
        and not Detail.NOTHING < tree.places[position].covered >= detail_of(tree.steps[position])
    ]
    if any(tree.steps[position].documents for position in retrieving):
        return retrieving
    kept = [position for position in positions if tree.steps[position].documents]
    return kept[:1] or retrieving


def _part(tree: Tree, root: int | None, positions: list[int], found: list[int]) -> Part:
    first = found[0] if root is None else root
    top = tree.steps[tree.places[first].top]
    questions = (tree.steps[first].question, *(tree.places[position].question for position in (first, *found)))
    return Part(
        root=None if root is None else tree.steps[root],
        top=top,
        steps=tuple(tree.steps[position] for position in positions),
        found=tuple(tree.steps[position] for position in found),
        question=next((question for question in questions if question), None),
        is_severed=top.parent is not None and not top.is_root,
    )
