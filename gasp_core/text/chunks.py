"""The removable units of context: the retriever's passages, or a single long passage in parts."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from gasp_core.grounding import Chunk, Passage
from gasp_core.text.sentences import split_answer

# Two texts are nearly identical if they share this part of their runs of three words (the Jaccard index): a corrected
# word in a passage of fifty, another footer, but not the same form filled in otherwise.
NEARLY_IDENTICAL = 0.8
RUN_WORDS = 3

_Span = tuple[int, int, int]  # passage index, start, end


def context_chunks(passages: Sequence[Passage], max_chunks: int) -> tuple[Chunk, ...]:
    """Return the chunks of the context, in the order of the passages. A blank passage gives none.

    Two or more passages with text are a chunk each, whole, however many they are. A single one is cut between its
    sentences into ``min(max_chunks, sentences)`` parts of nearly equal length that tile it. Chunks that say nearly
    the same, without regard to case, width and spacing, share a ``group``; groups are numbered from 0 in order.

    Raises ValueError if ``max_chunks`` is below 1.
    """
    if max_chunks < 1:
        raise ValueError(f"max_chunks must be at least 1, not {max_chunks}")
    filled = [index for index, passage in enumerate(passages) if passage.text.strip()]
    if len(filled) == 1:
        index = filled[0]
        parts = _parts(passages[index].text, max_chunks)
        return _grouped(passages, [(index, start, end) for start, end in parts])
    return _grouped(passages, [(index, 0, len(passages[index].text)) for index in filled])


def _parts(text: str, max_parts: int) -> list[tuple[int, int]]:
    """Cut ``text`` at the sentence starts nearest to equal lengths; each part holds at least one sentence."""
    starts = [sentence.start for sentence in split_answer(text)]
    n_parts = min(max_parts, len(starts))
    cuts = [0]
    chosen = 0  # index into starts of the last cut
    for part in range(1, n_parts):
        last = len(starts) - (n_parts - part)  # leaves a sentence for each part to come
        chosen = _nearest(starts, len(text) * part / n_parts, chosen + 1, last)
        cuts.append(starts[chosen])
    return list(pairwise([*cuts, len(text)]))


def _nearest(starts: Sequence[int], target: float, first: int, last: int) -> int:
    """Return the index in ``[first, last]`` of the start nearest to ``target``; the earlier one if two are."""
    right = bisect_left(starts, target, first, last)
    left = max(first, right - 1)
    return left if target - starts[left] <= starts[right] - target else right


def _grouped(passages: Sequence[Passage], spans: Sequence[_Span]) -> tuple[Chunk, ...]:
    groups = _Groups()
    return tuple(Chunk(index, start, end, groups.of(passages[index].text[start:end])) for index, start, end in spans)


class _Groups:
    """Numbers texts by what they say. A text joins the first group whose first text is nearly the same."""

    def __init__(self) -> None:
        self._exact: dict[str, int] = {}
        self._sizes: list[int] = []
        self._holders: dict[tuple[str, ...], list[int]] = {}

    def of(self, text: str) -> int:
        """The group of a text, a new one if need be."""
        said = _said(text)
        if said in self._exact:
            return self._exact[said]
        runs = _runs(said)
        group = self._near(runs)
        if group is None:
            group = len(self._sizes)
            self._sizes.append(len(runs))
            for run in runs:
                self._holders.setdefault(run, []).append(group)
        self._exact[said] = group
        return group

    def _near(self, runs: frozenset[tuple[str, ...]]) -> int | None:
        shared = Counter(group for run in runs for group in self._holders.get(run, ()))
        near = (
            group
            for group, count in shared.items()
            if count >= NEARLY_IDENTICAL * (len(runs) + self._sizes[group] - count)
        )
        return min(near, default=None)


def _runs(said: str) -> frozenset[tuple[str, ...]]:
    """All runs of words of a text; none if it is too short to be told apart by them."""
    words = said.split()
    return frozenset(tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1))


def _said(text: str) -> str:
    """Normalise for comparison. Folding case can undo composition, so it comes between two normalisations."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
