"""The layout of a text: prose, headings, list items, table rows and code, as character spans that tile it.

Answers are Markdown more often than not, and mostly loose Markdown. The rules here follow its intent line by line, in
one pass and without backtracking, because the text is somebody else's and may be a megabyte of one character. Where a
line could be either a claim or decoration it is taken for a claim: what is called a heading, a rule or code carries
no score, so those names are given only to lines that plainly are.

* A heading is an ATX line (``# x``), a line underlined with ``===`` or ``---``, or a line that is wholly bold with
  something after it. It is short and does not end like a sentence; otherwise it is prose.
* The first row of a table with a rule below it and a body below that is a heading: it claims nothing by itself.
* A thematic break (``---``, ``***``) has the kind of a table rule.
* Indented code needs a blank line before it, no list around it, a code character, and no line that ends like a
  sentence.
* Elements of HTML are parted by their tags (``gasp_core.text.markup``): an item, a row, a heading, a paragraph; so is
  what a model thought. What stands in an item or a paragraph is read as Markdown.
* Lines of a paragraph flow together, unless the paragraph has a claim per line: no line after the first starts in
  lower case, and the breaks are not wrapping, because the lines are narrower than anyone wraps prose or because the
  first word of one of them would have fitted on the line before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gasp_core.grounding import UnitKind
from gasp_core.text.markup import Region, body_end, regions

_TITLE_LIMIT = 120  # characters; a longer "heading" is a paragraph
_CODE_INDENT = 4  # columns
_NARROWEST_WRAP = 40  # columns
_ITEM_INDENT = 2  # columns that keep a later paragraph inside its list item

_SENTENCE_ENDS = tuple(".!。！।")
_BREAK_ENDS = (*_SENTENCE_ENDS, *"?:;？：；…")
_FENCE = re.compile(r"`{3,}|~{3,}")
_ATX = re.compile(r"#{1,6}(?=\s|$)")
_CODE_MARKS = re.compile(r"[{}()\[\]<>=;$\\_`]")
# Up to four markers in a row ("- 1. x"). Numbers have at most three digits, so that a year does not open an item.
_BULLET = r"[-*+–—](?=\s|$)|[•◦▪●‣∙·]"
_NUMBER = r"\d{1,3}[.)](?=\s|$)|\d{1,3}[、．]|[a-z][.)](?=\s|$)|[ivx]{1,4}[.)](?=\s|$)|\((?:\d{1,3}|[a-z]|[ivx]{1,4})\)"
_MARKERS = re.compile(rf"(?:(?:{_BULLET}|{_NUMBER})\s*){{1,4}}")
_FIRST_NUMBER = re.compile(r"\(?[1ai][.)、．]")
_RULE_CHARACTERS = frozenset("-*_=~—–─━═")
_TABLE_RULE_CHARACTERS = frozenset("|-:+= \t")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of layout: the half-open character span ``[start, end)``, with its text proper from ``body`` on.

    ``body`` lies behind a list item's marker and equals ``start`` elsewhere, except that the first block of a text
    starts at 0 even if its first visible character comes later.
    """

    start: int
    end: int
    body: int
    kind: UnitKind


class _Line(NamedTuple):
    """A line: where its first visible character is, the columns before it, and its text without outer whitespace."""

    start: int
    indent: int
    content: str


class _Mark(NamedTuple):
    """Where a block begins; it ends where the next begins. An item without text has ``body`` None."""

    start: int
    body: int | None
    kind: UnitKind


_Reading = tuple[list[_Mark], int]  # the marks found, and the index of the next line to read


def parse_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of ``text`` in order; they tile it: whitespace belongs to the block before it.

    Every block but the first starts with a visible character. An empty text has no block; a text of whitespace alone
    is one block of prose. Takes time linear in the length of the text.
    """
    if not text:
        return ()
    marks = _join_bare_markers([mark for region in regions(text) for mark in _region_marks(text, region)])
    if not marks:
        return (Block(0, len(text), 0, UnitKind.PROSE),)
    starts = [0, *(mark.start for mark in marks[1:]), len(text)]
    return tuple(
        Block(start, end, mark.start if mark.body is None else mark.body, mark.kind)
        for mark, (start, end) in zip(marks, pairwise(starts), strict=True)
    )


def _region_marks(text: str, region: Region) -> list[_Mark]:
    if region.kind not in {None, UnitKind.LIST_ITEM}:
        return [_Mark(region.start, region.start, region.kind or UnitKind.PROSE)]
    marks = [_moved(mark, region) for mark in _marks(_lines(text[region.body : body_end(text, region)]))]
    if marks and region.body > region.start:  # its opening tags
        marks[0] = marks[0]._replace(start=region.start)
    return marks


def _moved(mark: _Mark, region: Region) -> _Mark:
    body = None if mark.body is None else mark.body + region.body
    kind = region.kind if region.kind and mark.kind is UnitKind.PROSE else mark.kind
    return _Mark(mark.start + region.body, body, kind)


def _lines(text: str) -> list[_Line]:
    """Cut at every line end that ``str.splitlines`` knows. A run of blank lines is one line; at the end it is none."""
    lines: list[_Line] = []
    offset = 0
    for raw in text.splitlines(keepends=True):
        content = raw.strip()
        lead = raw[: len(raw) - len(raw.lstrip())] if content else ""
        if content or not lines or lines[-1].content:
            lines.append(_Line(offset + len(lead), len(lead.expandtabs(_CODE_INDENT)), content))
        offset += len(raw)
    return lines if not lines or lines[-1].content else lines[:-1]


def _marks(lines: Sequence[_Line]) -> list[_Mark]:
    marks: list[_Mark] = []
    at = 0
    while at < len(lines):
        if not lines[at].content:
            at += 1
            continue
        in_list = bool(marks) and marks[-1].kind is UnitKind.LIST_ITEM
        found, at = _read(lines, at, in_list=in_list)
        marks.extend(found)
    return marks


def _read(lines: Sequence[_Line], at: int, *, in_list: bool) -> _Reading:
    """Read the block or blocks that begin at the line ``at``, which is not blank."""
    line = lines[at]
    if _opens_fence(line.content):
        return [_Mark(line.start, line.start, UnitKind.CODE)], _fence_end(lines, at)
    if not in_list and at > 0 and not lines[at - 1].content and (end := _indented_code_end(lines, at)) > at:
        return [_Mark(line.start, line.start, UnitKind.CODE)], end
    if _opens_table(lines, at):
        return _read_table(lines, at)
    if _is_heading(lines, at):
        return [_Mark(line.start, line.start, UnitKind.HEADING)], at + 1
    if _is_underlined(lines, at):
        return [_Mark(line.start, line.start, UnitKind.HEADING)], at + 2
    if _is_rule(line.content):
        return [_Mark(line.start, line.start, UnitKind.TABLE_RULE)], at + 1
    return _read_flow(lines, at, in_list=in_list)


def _join_bare_markers(marks: Sequence[_Mark]) -> list[_Mark]:
    """Give a list marker without text to the block after it, or at the end of the text to the block before it."""
    joined: list[_Mark] = []
    bare: _Mark | None = None
    for mark in marks:
        if bare is None and mark.body is not None:
            joined.append(mark)
        elif mark.body is None:
            bare = bare or mark
        elif bare is not None:
            kind = UnitKind.LIST_ITEM if mark.kind is UnitKind.PROSE else mark.kind
            joined.append(_Mark(bare.start, mark.body, kind))
            bare = None
    if bare is not None and not joined:
        joined.append(bare)
    return joined


# Code


def _opens_fence(content: str) -> bool:
    """A line like ```` ```python ````, but not inline code that opens and closes on the same line."""
    fence = _FENCE.match(content)
    return fence is not None and (content[0] == "~" or "`" not in content[fence.end() :])


def _fence_end(lines: Sequence[_Line], at: int) -> int:
    opening = _FENCE.match(lines[at].content)
    length = opening.end() if opening else 0
    for index in range(at + 1, len(lines)):
        content = lines[index].content
        if len(content) >= length and content == lines[at].content[0] * len(content):
            return index + 1
    return len(lines)


def _indented_code_end(lines: Sequence[_Line], at: int) -> int:
    """Return the end of the run of lines from ``at`` that is plainly indented code, or ``at`` if it is not."""
    end = at
    has_code_mark = False
    while end < len(lines) and lines[end].content and lines[end].indent >= _CODE_INDENT:
        if lines[end].content.endswith((*_SENTENCE_ENDS, "?")):
            return at
        has_code_mark = has_code_mark or _CODE_MARKS.search(lines[end].content) is not None
        end += 1
    return end if has_code_mark else at


# Headings and rules


def _is_title(content: str) -> bool:
    title = content.strip("#*_: \t")
    return len(content) <= _TITLE_LIMIT and not title.endswith(_SENTENCE_ENDS)


def _is_heading(lines: Sequence[_Line], at: int) -> bool:
    content = lines[at].content
    if _ATX.match(content):
        return _is_title(content)
    bold = content.removesuffix(":")
    wholly_bold = len(bold) > len("****") and bold.startswith("**") and bold.find("**", 2) == len(bold) - 2
    return wholly_bold and at + 1 < len(lines) and _is_title(content)


def _is_underlined(lines: Sequence[_Line], at: int) -> bool:
    if at + 1 == len(lines) or not _is_title(lines[at].content) or _MARKERS.match(lines[at].content):
        return False
    underline = lines[at + 1].content
    return len(underline) >= len("---") and underline[0] in "=-" and not underline.strip(underline[0])


def _is_rule(content: str) -> bool:
    """A thematic break, or a table row in which every cell is empty."""
    characters = set(content) - {" ", "\t"}
    if len(characters) == 1 and characters <= _RULE_CHARACTERS:
        return len(content) >= len("---")
    return "|" in characters and characters <= _TABLE_RULE_CHARACTERS


# Tables


def _is_table_rule(content: str) -> bool:
    """``|---|:--:|`` or ``--- | ---``, or the ``+---+---+`` of a drawn table."""
    if not _TABLE_RULE_CHARACTERS.issuperset(content) or not ("-" in content or "=" in content):
        return False
    return "|" in content or (len(content) > 1 and content[0] == content[-1] == "+")


def _opens_table(lines: Sequence[_Line], at: int) -> bool:
    content = lines[at].content
    if _is_table_rule(content) or _is_piped_row(content):
        return True
    return "|" in content and at + 1 < len(lines) and _is_table_rule(lines[at + 1].content)


def _is_piped_row(content: str) -> bool:
    """A row with both outer pipes; needs no rule to be known."""
    return len(content) > 1 and content[0] == content[-1] == "|" and not _is_rule(content)


def _read_table(lines: Sequence[_Line], at: int) -> _Reading:
    marks = []
    end = at
    while end < len(lines) and ("|" in lines[end].content or _is_table_rule(lines[end].content)):
        line = lines[end]
        kind = UnitKind.TABLE_RULE if _is_rule(line.content) or _is_table_rule(line.content) else UnitKind.TABLE_ROW
        marks.append(_Mark(line.start, line.start, kind))
        end += 1
    kinds = [mark.kind for mark in marks]
    if kinds[:2] == [UnitKind.TABLE_ROW, UnitKind.TABLE_RULE] and UnitKind.TABLE_ROW in kinds[2:]:
        marks[0] = marks[0]._replace(kind=UnitKind.HEADING)
    return marks, end


# Paragraphs and list items


def _read_flow(lines: Sequence[_Line], at: int, *, in_list: bool) -> _Reading:
    """Read a paragraph, or a list item with its continuation lines."""
    line = lines[at]
    marker = _MARKERS.match(line.content)
    is_item = marker is not None or (in_list and line.indent >= _ITEM_INDENT)
    kind = UnitKind.LIST_ITEM if is_item else UnitKind.PROSE
    end = at + 1
    while end < len(lines) and lines[end].content and not _interrupts(lines, end, in_item=is_item):
        end += 1
    marks = [_Mark(line.start, _body(lines[at:end], marker), kind)]
    if _has_claim_per_line(lines[at:end]):
        rest = lines[at + 1 : end] if marker is None or marker.end() < len(line.content) else lines[at + 2 : end]
        marks.extend(_Mark(later.start, later.start, kind) for later in rest)
    return marks, end


def _body(flow: Sequence[_Line], marker: re.Match[str] | None) -> int | None:
    """Return where the text behind the marker begins, on the marker's line or the next; None if there is none."""
    first = flow[0]
    if marker is None:
        return first.start
    if marker.end() < len(first.content):
        return first.start + marker.end()
    return flow[1].start if len(flow) > 1 else None


def _interrupts(lines: Sequence[_Line], at: int, *, in_item: bool) -> bool:
    """Whether the line ``at`` begins a block of its own although no blank line precedes it."""
    content = lines[at].content
    if _opens_fence(content) or _is_heading(lines, at) or _is_rule(content) or _opens_table(lines, at):
        return True
    marker = _MARKERS.match(content)
    if marker is None:
        return False
    # A wrapped line may happen to start with "12." or a dash. A list goes on, starts at one, or follows a full stop.
    is_doubtful = content[0].isalnum() or content[0] in "(–—"
    return not is_doubtful or in_item or bool(_FIRST_NUMBER.match(content)) or _is_finished(lines[at - 1].content)


def _is_finished(content: str) -> bool:
    return content.rstrip("*_\"'”’)] ").endswith(_BREAK_ENDS)


def _has_claim_per_line(flow: Sequence[_Line]) -> bool:
    if len(flow) == 1 or any(_opens_in_lower_case(line.content) for line in flow[1:]):
        return False
    width = max(line.indent + len(line.content) for line in flow)
    return width < _NARROWEST_WRAP or any(joined <= width for joined in _widths_if_joined(flow))


def _widths_if_joined(flow: Sequence[_Line]) -> Iterator[int]:
    """Yield for each break the width its line would have with the next line's first word on it.

    Wrapping breaks a line only where that exceeds the paragraph's width. A script without spaces breaks anywhere.
    """
    for line, after in pairwise(flow):
        opening = after.content[0]
        has_no_spaces = opening.isalpha() and opening.lower() == opening.upper()
        word = 1 if has_no_spaces else len(after.content.split(maxsplit=1)[0])
        yield line.indent + len(line.content) + 1 + word


def _opens_in_lower_case(content: str) -> bool:
    return next((character for character in content if character.isalnum()), "").islower()
