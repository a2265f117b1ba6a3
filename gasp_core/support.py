"""Which chunks support a sentence: the one that it reacts to, or several that stand in for each other.

Where two chunks hold what a sentence says, it hardly reacts to the removal of either. Its gap tells that there is
support somewhere. So each group of chunks is left alone in the context, which shows what it gives by itself. The
strongest are removed together: the fewest without which the sentence loses most of its gap are its support. No words
are compared, so language, length and wording of the chunks are no matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gasp_core.grounding import ChunkDrop

# A drop of less is no reaction: it is within what the precision of the passes moves a sentence.
MIN_REACTION_NATS = 0.05
# A gap of more has its support looked for: a half of it is three times what counts as a reaction.
LARGE_GAP_NATS = 0.3
# A drop of this share of a large gap explains it: more is lost with the chunk than is left without it.
NEAR = 0.5
# A drop of less of a large gap is far from explaining it, as what a chunk of the same subject has by its words alone;
# and a group of chunks that by itself gives less of it says something else.
FAR = 0.25

Removal = tuple[int, ...]  # the groups of chunks that are taken out together, in order
Drops = Mapping[Removal, float]  # what a sentence lost by each, in nats


@dataclass(frozen=True, slots=True)
class Support:
    """The groups of chunks that support a sentence, in order, and what it loses without all of them, in nats.

    Without groups ``drop`` is the largest of one group, and ``unlocated`` says that the gap is too large for that: the
    support is in the context, and in no few of its chunks.
    """

    groups: Removal
    drop: float
    unlocated: bool = False


def support_of(gap: float, groups: Removal, drops: Drops) -> Support:
    """What supports a sentence of this gap, by the drops that are known; those of the single groups must be."""
    best = max(groups, key=lambda group: drops[group,])
    largest = drops[best,]
    one = Support((best,), largest)
    if not _is_open(gap, largest):
        return one if largest >= MIN_REACTION_NATS else Support((), largest)
    together, _ = _search(gap, groups, drops)
    if together:
        return Support(together, drops[together])
    return one if largest >= FAR * gap else Support((), largest, unlocated=True)


def missing_removals(gap: float, groups: Removal, drops: Drops) -> Sequence[Removal]:
    """The removals whose drops ``support_of`` would want to know next; none if it knows enough."""
    if not _is_open(gap, max(drops[group,] for group in groups)):
        return ()
    if alone := [others for others in _others(groups).values() if others not in drops]:
        return alone
    _, wanted = _search(gap, groups, drops)
    return () if wanted is None else (wanted,)


def contradicting_chunk(drops: Sequence[ChunkDrop], supporting: Sequence[int] = ()) -> int | None:
    """The chunk whose removal helps the sentence most, the first of equals; None if none does.

    Without one of several that say the same, the sentence may be likelier by chance: a ``supporting`` chunk is none.
    """
    worst = min((drop for drop in drops if drop.chunk not in supporting), key=lambda drop: drop.drop, default=None)
    return worst.chunk if worst is not None and worst.drop <= -MIN_REACTION_NATS else None


def _is_open(gap: float, largest: float) -> bool:
    """Whether a gap says that there is more support than the largest drop of a single group."""
    return gap >= LARGE_GAP_NATS and largest < NEAR * gap


@lru_cache(maxsize=8)  # the sentences of a window ask for the same, again and again
def _others(groups: Removal) -> Mapping[int, Removal]:
    """For each group the removal that leaves it alone."""
    return {group: tuple(other for other in groups if other != group) for group in groups}


def _search(gap: float, groups: Removal, drops: Drops) -> tuple[Removal, Removal | None]:
    """The fewest groups known to explain the gap, if any, and the removal to try next, if any.

    Halves the number of groups between one, which does not explain it, and all that give a part of it by themselves.
    """
    given = {group: gap - drops[others] for group, others in _others(groups).items() if others in drops}
    order = sorted((group for group in given if given[group] >= FAR * gap), key=lambda group: -given[group])
    found: Removal = ()
    low, high = 1, len(order)
    count = high
    while low < count:
        removal = tuple(sorted(order[:count]))
        if removal not in drops:
            return found, removal
        if drops[removal] >= NEAR * gap:
            found, high = removal, count
        elif found:
            low = count
        else:
            break
        count = (low + high) // 2
    return found, None
