"""The removable units of context: the retriever's passages, or a single long passage in parts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from gasp_core.grounding import Chunk, Passage
from gasp_core.text.evidence import passage_skip
from gasp_core.text.groups import groups_of
from gasp_core.text.sentences import split_answer

_Span = tuple[int, int, int]  # passage index, start, end


def context_chunks(passages: Sequence[Passage], max_chunks: int) -> tuple[Chunk, ...]:
    """Return the chunks of the context, in the order of the passages.

    A passage that is no evidence (``passage_skip``) gives none. Two or more that are any are a chunk each, whole,
    however many they are. A single one is cut between its sentences into ``min(max_chunks, sentences)`` parts of
    nearly equal length that tile it. Chunks that say nearly the same, without regard to case, width and spacing, share
    a ``group``; groups are numbered from 0 in order.

    Raises ValueError if ``max_chunks`` is below 1.
    """
    if max_chunks < 1:
        raise ValueError(f"max_chunks must be at least 1, not {max_chunks}")
    filled = [index for index, passage in enumerate(passages) if passage_skip(passage.text) is None]
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
    groups = groups_of([passages[index].text[start:end] for index, start, end in spans])
    return tuple(Chunk(*span, group) for span, group in zip(spans, groups, strict=True))
