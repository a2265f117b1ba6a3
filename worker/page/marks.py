"""What a sentence has in common with a passage, word by word, as pieces of the passage to mark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from gasp_core.text import scripts
from gasp_core.text.languages import Language
from gasp_core.text.words import stems, words

_TOKEN = re.compile(r"\d+(?:[.,'’٫٬]\d+)*|\w+(?:['’]\w+)*")
_UNSPACED = re.compile(f"[{scripts.UNSPACED}]")
_PAIR = 2
# Of one text. A browser takes half a minute to lay out ten thousands, and nobody reads by so many.
MAX_MARKS = 500


class Piece(NamedTuple):
    """A part of a text, and whether it is marked."""

    text: str
    is_marked: bool


def telling_stems(sentence: str, language: Language | None) -> frozenset[str]:
    """The stems of the words, names and numbers of a sentence, without words of grammar."""
    return frozenset(word.stem for word in words(sentence, language) if word.is_content or word.is_number)


def marked(text: str, shared: frozenset[str], language: Language | None) -> list[Piece]:
    """The text in pieces, of which those are marked that have a stem of ``shared``, the first ``MAX_MARKS`` of them.

    Takes time linear in its length.
    """
    pieces: list[Piece] = []
    at = 0
    for start, end in islice(_joined(_spans(text, shared, language)), MAX_MARKS):
        if start > at:
            pieces.append(Piece(text[at:start], is_marked=False))
        pieces.append(Piece(text[start:end], is_marked=True))
        at = end
    if at < len(text):
        pieces.append(Piece(text[at:], is_marked=False))
    return pieces


def _spans(text: str, shared: frozenset[str], language: Language | None) -> Iterator[tuple[int, int]]:
    known: dict[str, bool] = {}
    for token in _TOKEN.finditer(text):
        word = token.group()
        if _UNSPACED.search(word):
            yield from _pairs(word, token.start(), shared)
            continue
        if word not in known:
            known[word] = not shared.isdisjoint(stems(word, language))
        if known[word]:
            yield token.span()


def _pairs(run: str, start: int, shared: frozenset[str]) -> Iterator[tuple[int, int]]:
    """In scripts without blanks a word is a pair of neighbours."""
    for place in range(len(run)):
        if run[place : place + _PAIR] in shared:
            yield start + place, start + min(place + _PAIR, len(run))


def _joined(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans that overlap or touch as one."""
    open_span: tuple[int, int] | None = None
    for start, end in spans:
        if open_span is not None and start <= open_span[1]:
            open_span = (open_span[0], max(end, open_span[1]))
            continue
        if open_span is not None:
            yield open_span
        open_span = (start, end)
    if open_span is not None:
        yield open_span
