"""The sentences of a text: its layout from the blocks, its sentence boundaries inside prose from sentencex.

Boundaries are those of sentencex for English, which also knows the full stops of the other scripts, with these
repairs: closing quotes, closing markup and citations stay with the sentence they close; a list marker ("2.") stays
with its item; an abbreviation before a number or a lower-case word ("approx. 5") ends nothing; a long quotation is
split like other prose, where sentencex would keep it whole and so hide many claims in one unit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import sentencex

from gasp_core.grounding import Sentence, UnitKind
from gasp_core.text.abbreviations import leads_on
from gasp_core.text.blocks import Block, parse_blocks
from gasp_core.text.references import citations

# sentencex takes time quadratic in its input for some quotation marks, so it sees a window at a time.
_WINDOW = 2_000  # characters
_LOOKAHEAD = 200  # characters at a window's end in which a boundary is not yet trusted
_LONG_QUOTATION = 300  # characters

_FLOWING = frozenset({UnitKind.PROSE, UnitKind.LIST_ITEM})

# sentencex (1.0.32) panics on whitespace of several bytes behind an initial, and rejects lone surrogates. It reads a
# shadow of the text instead, in which each character keeps its place: all whitespace is a space. A bullet within a
# line would keep it from splitting what follows; a middle dot does not.
_NOT_A_SPACE = re.compile(r"[^\S ]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BULLET = re.compile("[•◦▪●]")
# Full stops that sentencex does not know: Khmer, Tibetan, Mongolian, Sinhala, Ol Chiki, Javanese, Balinese and others.
# ``។ល។`` stands for "and so on" within a sentence.
_STOP = re.compile("។(?!ល។)|[៕༎།༏༐༑᠃᠉෴᱾᱿꧉᭟᭞᭚᭛꩝꩞꩟᪨-᪫]")
_QUOTATION = re.compile("[\"'`‘’‚‛“”„‟«»‹›「」『』〈〉《》]")

_CLOSERS = re.compile(r"[*_~`\"'”’»›)\]}】』」〉》¹²³⁰⁴-⁹†‡]{1,16}(?=[\s<]|$)")
_CLOSING_TAG = re.compile(r"\s{0,8}(?:</[a-zA-Z][a-zA-Z0-9]{0,15}\s{0,3}>|<[bh]r\s{0,3}/?>)")
# "[1]", "(Passage 2)", "(Smith et al., 2020)." hold a digit; "(2)" rather numbers what follows; "(It was 5.)" is a
# sentence of its own.
_CITATION = re.compile(
    r"\s*(?:\[(?=[^\[\]]{0,80}\d)[^\[\]]{1,80}\]|\((?!\d{1,2}\))(?=[^()]{0,80}\d)[^()]{1,79}[^().!?]\))[.,;]?(?=\s|$)"
)
_MOST_BLANKS = 3
# What ends the sentence that a citation stands behind. The pattern's own end is that of where it looks.
_STOPPED = re.compile(r"[.!?…。！？．।॥؟۔።။།།។៕][\"'”’)\]*_]{0,4}\s{0,3}\Z")
_MOST_STOPS = 12  # characters
_SPACE = re.compile(r"\s*")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_BARE_MARKER = re.compile(r"[*_]{0,3}\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)][*_]{0,3}\s*")
_INLINE_NUMBER = re.compile(r"(:?)\s{1,3}(\(?(\d{1,3})[.)]\s{0,3})$")
_NEVER_FIRST = frozenset(",;:)]}，；：）、")  # characters that no sentence starts with
# In Japanese a quotation goes on in its sentence: 「…。」と言った.
_QUOTED = re.compile(r"[」』”][ \u3000]?(?:と(?![こてもきにり])|って|を|など|の(?!ち))")


def split_answer(text: str) -> tuple[Sentence, ...]:
    """Return the units of ``text`` in order. They tile it: each character belongs to exactly one.

    Whitespace belongs to the unit before it, whitespace at the start of the text to the first unit. Prose and list
    items are cut into sentences, a list marker staying with its item's first sentence; a heading, a code block, a
    table row, a rule or what a model thought is one unit. An empty text has no unit, a text of whitespace alone is one
    unit of prose.
    Serves a passage as well as an answer. Never raises on any string; takes time linear in its length.
    """
    return tuple(sentence for block in parse_blocks(text) for sentence in _block_sentences(text, block))


def _block_sentences(text: str, block: Block) -> Iterator[Sentence]:
    starts = [block.start]
    if block.kind in _FLOWING:
        body = text[block.body : block.end]
        starts.extend(block.body + start for start in _sentence_starts(body))
    for start, end in pairwise([*starts, block.end]):
        yield Sentence(start, end, block.kind)


def _sentence_starts(body: str) -> list[int]:
    """Return where the second and later sentences of ``body`` start: offsets of visible characters."""
    starts: list[int] = []
    piece_start = 0
    number = 1  # the next one in a numbered list that runs on within its line
    cited = _Cited(body)
    for found in _boundaries(_shadow(body)):
        boundary = found
        if boundary <= piece_start:  # within what closed the sentence before
            continue
        if citation := cited.around(boundary):
            if not _STOPPED.search(body, max(0, citation[0] - _MOST_STOPS), citation[0]):
                continue
            boundary = citation[1]
        start = _before_number(body, boundary, number)
        if start < boundary:
            number += 1
        else:
            start = _behind_what_closes(body, boundary, cited)
        if start <= piece_start or start == len(body):
            continue
        if body[start] in _NEVER_FIRST or leads_on(body, piece_start, start) or _QUOTED.match(body, start - 1):
            continue
        if not _says_nothing(body, piece_start, start):
            starts.append(start)
        piece_start = start
    if starts and starts[-1] == piece_start and _says_nothing(body, piece_start, len(body)):
        starts.pop()
    return starts


def _says_nothing(body: str, start: int, end: int) -> bool:
    """Whether ``body[start:end]`` is a list marker alone or has no letter or digit."""
    if _BARE_MARKER.fullmatch(body, start, end):
        return True
    return _LETTER_OR_DIGIT.search(body, start, end) is None


def _before_number(body: str, boundary: int, number: int) -> int:
    """Move a boundary in "The steps: 1. | Mix 2. | Bake" before its number, if that is ``number``.

    The first needs a colon before it, so that "in grade 1. She" stays what it is.
    """
    tail_start = max(0, boundary - 12)
    tail = _INLINE_NUMBER.search(body[tail_start:boundary])
    if tail is None or int(tail[3]) != number or (number == 1 and not tail[1]):
        return boundary
    return tail_start + tail.start(2)


def _behind_what_closes(body: str, boundary: int, cited: _Cited) -> int:
    """Move a boundary behind closing marks, tags, citations and whitespace: they belong to the sentence before."""
    position = boundary
    while True:
        if not body[position - 1].isspace() and (closers := _CLOSERS.match(body, position)):
            position = closers.end()
        elif tag := _CLOSING_TAG.match(body, position):
            position = tag.end()
        elif citation := _CITATION.match(body, position):
            position = citation.end()
        elif (end := cited.end_at(body, position)) is not None:
            position = end
        else:
            break
    space = _SPACE.match(body, position)
    return space.end() if space else position


class _Cited:
    """The citations of a text, found once: half-open spans in order."""

    def __init__(self, body: str) -> None:
        self._spans = list(citations(body))
        self._starts = [start for start, _ in self._spans]

    def around(self, boundary: int) -> tuple[int, int] | None:
        """The citation that a boundary lies within."""
        index = bisect_left(self._starts, boundary) - 1
        return self._spans[index] if index >= 0 and boundary < self._spans[index][1] else None

    def end_at(self, body: str, position: int) -> int | None:
        """Where the citation ends that begins at a position, or up to three blanks behind it."""
        index = bisect_left(self._starts, position)
        if index == len(self._spans) or self._starts[index] - position > _MOST_BLANKS:
            return None
        start, end = self._spans[index]
        return None if body[position:start].strip() else end


# sentencex


def _shadow(body: str) -> str:
    body = _STOP.sub("。", body)
    return _BULLET.sub("·", _SURROGATE.sub("\ufffd", _NOT_A_SPACE.sub(" ", body)))


def _boundaries(shadow: str) -> Iterator[int]:
    """Yield the sentence boundaries of ``shadow`` in ascending order, without 0 and its length.

    The next window begins at the last boundary found, so that no sentence is cut by a window's end. In a sentence
    longer than a window the next one begins in its midst, at a space if there is one, which is no boundary.
    """
    at = 0
    while at < len(shadow):
        found = [at + boundary for boundary in _window_boundaries(shadow[at : at + _WINDOW])]
        if at + _WINDOW >= len(shadow):
            yield from found
            return
        trusted_end = at + _WINDOW - _LOOKAHEAD
        trusted = [boundary for boundary in found if boundary <= trusted_end]
        yield from trusted
        at = trusted[-1] if trusted else max(shadow.rfind(" ", at, trusted_end) + 1, at + _WINDOW // 2)


def _window_boundaries(window: str) -> Iterator[int]:
    for start, end in pairwise([*_segment(window), len(window)]):
        if start > 0:
            yield start
        if end - start > _LONG_QUOTATION and (bare := _QUOTATION.sub("*", window[start:end])) != window[start:end]:
            yield from (start + boundary for boundary in _segment(bare) if boundary > 0)


def _segment(window: str) -> list[int]:
    """Return where the sentences of ``window`` start according to sentencex: code points, the first is 0."""
    try:
        found: list[dict[str, Any]] = sentencex.get_sentence_boundaries("en", window)
    except BaseException as fault:
        # A panic in its native code is no Exception and would end the process over one odd message. Losing the
        # boundaries of one window costs only how finely it is scored.
        if type(fault).__name__ != "PanicException":
            raise
        return [0]
    return [sentence["start_index"] for sentence in found]
