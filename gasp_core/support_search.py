"""Looking for what supports the sentences of one answer, beyond what leave-one-out tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gasp_core.grounding import Chunk, ChunkDrop, SentenceGrounding
from gasp_core.support import Drops, Removal, Support, contradicting_chunk, missing_removals, support_of

# Retrievers give the best first, and each group that is removed by itself costs a prompt: what comes behind so many
# groups is removed together. Then the work on an answer has a bound, whatever the number of its passages.
MOST_GROUPS = 64
# How many prompts more a window may cost for each of its groups of chunks: one with that group alone, which is short,
# and two without several. Neighbours among overlapping chunks are one pair for each, and halving seldom takes more.
MOST_PER_GROUP = 3


def with_rest_together(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks with those behind the first 64 groups in one group, the last, which is removed as a whole."""
    return tuple(replace(chunk, group=min(chunk.group, MOST_GROUPS)) for chunk in chunks)


class SupportSearch:
    """Asks, window by window, for the drops that are missing, as long as there are some and the bound allows it.

    ``windows`` are the groups of chunks of each window, in order; a sentence is looked at in its own. Of the chunks
    that are removed together for their number none is named.
    """

    def __init__(
        self, sentences: Sequence[SentenceGrounding], chunks: Sequence[Chunk], windows: Sequence[Removal]
    ) -> None:
        self._sentences = sentences
        self._chunks = chunks
        self._windows = windows
        self._left = [MOST_PER_GROUP * len(groups) for groups in windows]
        self._known = {one.index: self._known_of(one) for one in sentences if one.drops and one.gap is not None}

    def wanted(self) -> list[list[Removal]]:
        """The removals to read next in each window, those that most sentences ask for first; none at the end."""
        asked = [Counter[Removal]() for _ in self._windows]
        for one, gap, drops in self._open():
            asked[one.window].update(missing_removals(gap, self._windows[one.window], drops))
        found = [
            [removal for removal, _ in each.most_common(left)] for each, left in zip(asked, self._left, strict=True)
        ]
        self._left = [left - len(removals) for left, removals in zip(self._left, found, strict=True)]
        return found

    def learn(self, window: int, drops_of: Callable[[int], Drops]) -> None:
        """Take in what was read of a window, by the index of the sentence."""
        for one, _, drops in self._open():
            if one.window == window:
                drops.update(drops_of(one.index))

    def sentences(self) -> tuple[SentenceGrounding, ...]:
        """All of them, with what is known of their support."""
        supports = {one.index: support_of(gap, self._windows[one.window], drops) for one, gap, drops in self._open()}
        return tuple(self._with(one, supports[one.index]) if one.index in supports else one for one in self._sentences)

    def _open(self) -> list[tuple[SentenceGrounding, float, dict[Removal, float]]]:
        return [(one, one.gap, self._known[one.index]) for one in self._sentences if one.gap is not None and one.drops]

    def _known_of(self, one: SentenceGrounding) -> dict[Removal, float]:
        """What leave-one-out told. Without all groups a sentence loses its gap."""
        own = {(self._chunks[drop.chunk].group,): drop.drop for drop in one.drops}
        return {self._windows[one.window]: one.gap or 0.0} | own

    def _with(self, one: SentenceGrounding, support: Support) -> SentenceGrounding:
        if MOST_GROUPS in support.groups:
            support = Support((), support.drop, unlocated=True)
        members = [drop for drop in one.drops if self._chunks[drop.chunk].group in support.groups]
        supporting = tuple(drop.chunk for drop in members)
        return replace(
            one,
            supporting_chunk=_largest(members),
            supporting_chunks=supporting,
            supporting_drop=support.drop,
            unlocated=support.unlocated,
            contradicting_chunk=contradicting_chunk(one.drops, supporting),
        )


def _largest(drops: Sequence[ChunkDrop]) -> int | None:
    """The chunk with the largest drop, the first of equals."""
    best = max(drops, key=lambda drop: drop.drop, default=None)
    return None if best is None else best.chunk
