"""Marks in an answer that are no part of what it says: ``[doc1]``, ``[2]``, 【4:0†source】.

An answer is scored without them, because they would be read as words. Its sentences are spans of the answer as it was
shown, with them. A mark is a half-open span ``(start, end)`` of the shown answer; the marks of an answer are in order
and do not overlap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeAlias

from gasp_core.grounding import AnswerGrounding, Sentence

Marks: TypeAlias = Sequence[tuple[int, int]]


def without_marks(shown: str, marks: Marks) -> str:
    """Return what the shown answer says."""
    pieces, end = [], 0
    for start, behind in marks:
        pieces.append(shown[end:start])
        end = behind
    return "".join((*pieces, shown[end:]))


def said_between(shown: str, marks: Marks, start: int, end: int) -> str:
    """Return what a span of the shown answer says. A mark lies wholly in it or outside."""
    inside = [(first - start, behind - start) for first, behind in marks if start <= first and behind <= end]
    return without_marks(shown[start:end], inside)


def as_shown(grounding: AnswerGrounding, marks: Marks) -> AnswerGrounding:
    """Return the grounding of an answer without its marks, with its spans of characters as the shown answer has them.

    The sentences tile the shown answer as they tiled what was scored; a mark belongs to the sentence that it stands in
    or behind. Takes time linear in sentences and marks, but for a logarithm.
    """
    if not marks:
        return grounding
    shown = _shown_positions(marks)
    places = shown_sentences((one.sentence for one in grounding.sentences), marks)
    # A mark that stands right behind the worst words is none of them.
    worst = (one.worst and (shown(one.worst[0]), shown(one.worst[1] - 1) + 1) for one in grounding.sentences)
    found = zip(grounding.sentences, places, worst, strict=True)
    return replace(grounding, sentences=tuple(replace(one, sentence=at, worst=words) for one, at, words in found))


def shown_sentences(sentences: Iterable[Sentence], marks: Marks) -> list[Sentence]:
    """Return spans of what the answer says as spans of the shown answer.

    shown    Yes [1]. No.     marks (3, 7)
    said     Yes. No.
    (0, 5) -> (0, 9); (5, 8) -> (9, 12)
    """
    shown = _shown_positions(marks)
    return [replace(one, start=shown(one.start) if one.start else 0, end=shown(one.end)) for one in sentences]


def _shown_positions(marks: Marks) -> Callable[[int], int]:
    """From a position in what the answer says to the one in the shown answer, behind a mark that stands there."""
    removed = list(accumulate(end - start for start, end in marks))
    # Where each mark was taken out, as a position in what is left.
    places = [start - before for (start, _), before in zip(marks, [0, *removed], strict=False)]

    def shown(position: int) -> int:
        count = bisect_right(places, position)
        return position + (removed[count - 1] if count else 0)

    return shown


def said_spans(spans: Iterable[tuple[int, int]], marks: Marks) -> list[tuple[int, int]]:
    """Return spans of the shown answer as spans of what it says: the way back. A mark lies wholly in one or outside."""
    ends = [end for _, end in marks]
    removed = [0, *accumulate(end - start for start, end in marks)]
    return [
        (start - removed[bisect_right(ends, start)], end - removed[bisect_right(ends, end)]) for start, end in spans
    ]
