"""Marks of citations in an answer, as spans of it: what is cut so that the rest reads as if there had been none."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.payload import JsonObject

_BETWEEN = re.compile(r"[ \t]*+[,;]?[ \t]*+")
_BLANK = " \t"
# What stands behind a mark as if the mark were not there: the blank before it goes with it.
_CLOSES = frozenset(" \t\r\n.,;:!?)]}\"'»”’…。，；：！？）」』")


def numbered_marks(answer: str, pattern: re.Pattern[str], count: int) -> list[tuple[int, int]]:
    """Return the marks in ``answer`` whose number, the pattern's only group, is one of the ``count`` sources."""
    return [found.span() for found in pattern.finditer(answer) if 1 <= int(found[1]) <= count]


def cut_marks(answer: str, spans: Iterable[tuple[int, int]]) -> list[JsonObject]:
    """Return ``answer_marks`` for the marks at these spans, each of which lies within the answer.

    Marks that stand together, with at most a comma between them, are one, the round brackets around them go with them,
    and so does the blank that would be left alone. Takes time linear in the answer but for sorting.
    """
    marks: list[tuple[int, int]] = []
    for start, end in _joined(answer, spans):
        first, last = _with_brackets(answer, start, end)
        first, last = _with_blanks(answer, first, last)
        if marks and first <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(last, marks[-1][1]))
        else:
            marks.append((first, last))
    return [{"start": start, "end": end} for start, end in marks]


def _joined(answer: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and (start <= joined[-1][1] or _BETWEEN.fullmatch(answer, joined[-1][1], start)):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _with_brackets(answer: str, start: int, end: int) -> tuple[int, int]:
    if start > 0 and answer[start - 1] == "(" and answer[end : end + 1] == ")":
        return start - 1, end + 1
    return start, end


def _with_blanks(answer: str, start: int, end: int) -> tuple[int, int]:
    before = start
    while before > 0 and answer[before - 1] in _BLANK:
        before -= 1
    if end == len(answer) or answer[end] in _CLOSES:
        begins_line = before == 0 or answer[before - 1] == "\n"
        if not begins_line:
            return before, end
    elif before > 0 and answer[before - 1] != "\n":
        return start, end
    while end < len(answer) and answer[end] in _BLANK:
        end += 1
    return start, end
