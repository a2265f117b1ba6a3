"""Which of several texts say nearly the same."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

# Two texts are nearly identical if they share this part of their runs of three words (the Jaccard index): a corrected
# word in a passage of fifty, another footer, but not the same form filled in otherwise.
NEARLY_IDENTICAL = 0.8
RUN_WORDS = 3
# With how many groups a text is compared, and how many hold one of its runs on average where they are looked up. Among
# fewer groups nothing is overlooked; beyond, those that share the most rare runs come first.
MOST_COMPARED = 64

_Run = tuple[str, ...]


def groups_of(texts: Sequence[str]) -> list[int]:
    """The group of each text, numbered from 0 in order: those that say nearly the same share one.

    Case, width and spacing do not count. A text joins the first group whose first text is nearly the same. The work
    grows with the length of the texts, whatever they have in common.
    """
    said = [_said(text) for text in texts]
    runs = {one: _runs(one) for one in said}
    groups = _Groups(runs.values())
    found = {one: groups.of(runs[one]) for one in dict.fromkeys(said)}
    return [found[one] for one in said]


class _Groups:
    """Numbers sets of runs.

    Two sets of which one holds most of the other have one of their rarest runs in common, if both are put in one order:
    so only these are looked up, and what half of the texts repeat makes no pair of them candidates.
    """

    def __init__(self, sets: Iterable[frozenset[_Run]]) -> None:
        self._rarity = Counter(run for runs in sets for run in runs)
        self._firsts: list[frozenset[_Run]] = []
        self._holders: dict[_Run, list[int]] = {}

    def of(self, runs: frozenset[_Run]) -> int:
        """The group of a set, a new one if need be."""
        rarest = self._rarest(runs)
        near = [group for group in self._candidates(rarest) if _is_near(runs, self._firsts[group])]
        if near:
            return min(near)
        self._firsts.append(runs)
        for run in rarest:
            self._holders.setdefault(run, []).append(len(self._firsts) - 1)
        return len(self._firsts) - 1

    def _rarest(self, runs: frozenset[_Run]) -> list[_Run]:
        """So many that a set that is nearly the same must hold one of them among its own."""
        # Rounded, so that 0.8 of ten runs are eight.
        least_shared = math.ceil(round(NEARLY_IDENTICAL * len(runs), 6))
        return sorted(runs, key=lambda run: (self._rarity[run], run))[: len(runs) - least_shared + 1]

    def _candidates(self, rarest: Sequence[_Run]) -> list[int]:
        shared = Counter[int]()
        left = MOST_COMPARED * len(rarest)
        for run in rarest:
            holders = self._holders.get(run, ())
            shared.update(holders[:left])
            left -= len(holders)
            if left <= 0:
                break
        return [group for group, _ in shared.most_common(MOST_COMPARED)]


def _is_near(left: frozenset[_Run], right: frozenset[_Run]) -> bool:
    smaller, larger = sorted((len(left), len(right)))
    if smaller < NEARLY_IDENTICAL * larger:
        return False
    shared = len(left & right)
    return shared >= NEARLY_IDENTICAL * (smaller + larger - shared)


def _runs(said: str) -> frozenset[_Run]:
    """All runs of words of a text; none if it is too short to be told apart by them."""
    words = said.split()
    return frozenset(tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1))


def _said(text: str) -> str:
    """Normalise for comparison. Folding case can undo composition, so it comes between two normalisations."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
