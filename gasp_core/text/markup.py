"""Where the tags of an answer part it: elements of HTML, and what a model thought (``<think>…</think>``).

Tags within code, and those that a text only names ("the <p> tag"), part nothing. One pass over the tags, without
backtracking and without a tree: an answer's HTML is often broken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from gasp_core.grounding import UnitKind

_THOUGHT_NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")
_VOID = frozenset({"br", "hr"})
_ITEMS = frozenset({"li", "dd", "dt"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_ROW_ENDS = frozenset({"tr", "table", "thead", "tbody", "tfoot"})
_LIST_ENDS = frozenset({"li", "ul", "ol", "dl"})
_PLAIN = (
    *("p", "div", "section", "article", "header", "footer", "main", "aside", "blockquote", "ul", "ol", "dl", "table"),
    *("thead", "tbody", "tfoot", "caption", "details", "summary", "figure", "figcaption", "address", "center", "pre"),
)
_NAMES = "|".join(sorted({*_THOUGHT_NAMES, *_VOID, *_ITEMS, *_HEADINGS, "tr", *_PLAIN}, key=len, reverse=True))
# Code within a line comes first, so that tags in it are not found.
_PARTS = re.compile(
    rf"`[^`\n]{{1,300}}`|<(?P<closes>/?)(?P<name>{_NAMES})(?=[\s/>])[^<>]{{0,300}}>|\[(?P<ends>/?)(?P<square>THINK)\]",
    re.IGNORECASE,
)
TAG = re.compile(r"</?[a-z][^<>]{0,300}>", re.IGNORECASE)
"""Any tag of HTML, with its attributes."""
_CELL = re.compile(r"<(t[dh])\b", re.IGNORECASE)
_CLOSING = re.compile(r"</[a-z][^<>]{0,100}>|<[bh]r\s{0,3}/?>", re.IGNORECASE)
_LONGEST_TAG = 400  # characters, with blanks
_FENCE = re.compile(r"^[ \t]{0,40}(`{3,}(?!.{0,1000}`)|~{3,})", re.MULTILINE)
_SEEN = re.compile(r"[^\W_]")
_TITLE_LIMIT = 120  # characters; a longer "heading" is a paragraph
_SENTENCE_ENDS = tuple(".!?:;。！？।…")
_NEVER_OF_A_TITLE = tuple(".!。！।")


@dataclass(frozen=True, slots=True)
class Region:
    """The half-open span ``[start, end)`` of a text, with what stands behind its opening tags from ``body`` on.

    Where ``kind`` is None its text is read as Markdown; so is a list item's, whose prose then belongs to the list. Of
    any other kind it is one unit.
    """

    start: int
    end: int
    body: int
    kind: UnitKind | None = None


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    closes: bool


@dataclass(slots=True)
class _Cut:
    """Where a region begins. ``is_open`` if opening tags stand there, and it is not the end of what closed before."""

    start: int
    body: int
    kind: UnitKind | None
    is_open: bool


def regions(text: str) -> tuple[Region, ...]:
    """Return the regions of a text in order; they tile it. Takes time linear in its length."""
    if "<" not in text and "[" not in text:
        return (Region(0, len(text), 0),)
    tags = list(_tags(text))
    if not tags:
        return (Region(0, len(text), 0),)
    parting = list(_parting(text, tags))
    found: list[Region] = []
    at = 0
    for start, end in _thoughts(text, tags):
        found.extend(_elements(text, at, start, parting))
        found.append(Region(start, end, start, UnitKind.THOUGHT))
        at = end
    found.extend(_elements(text, at, len(text), parting))
    return tuple(found)


# Tags


def _tags(text: str) -> Iterator[_Tag]:
    """The tags that part a text, outside of code."""
    fences = _fences(text)
    fence = next(fences, (len(text), len(text)))
    for found in _PARTS.finditer(text):
        while found.start() >= fence[1] and fence[0] < len(text):
            fence = next(fences, (len(text), len(text)))
        name = (found["name"] or found["square"] or "").lower()
        if name and not fence[0] <= found.start() < fence[1]:
            yield _Tag(found.start(), found.end(), name, bool(found["closes"] or found["ends"]))


def _fences(text: str) -> Iterator[tuple[int, int]]:
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        if opened is None:
            opened = found
        elif found[1].startswith(opened[1]):
            yield opened.start(), found.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


# Thoughts


def _thoughts(text: str, tags: Sequence[_Tag]) -> Iterator[tuple[int, int]]:
    """The spans of what was thought, in order: blocks, and what stands before an end without a beginning."""
    tags = [tag for tag in tags if tag.name in _THOUGHT_NAMES]
    at = index = 0
    while index < len(tags):
        tag = tags[index]
        if tag.closes:
            index += 1
            if _stands_alone(text, tag):
                yield at, tag.end
                at = tag.end
            continue
        behind, end = _thought_end(text, tags, index)
        if end > tag.end and _SEEN.search(text, tag.end, end) and (behind is not None or _begins(text, tag.start)):
            yield tag.start, end
            at = end
            index = len(tags) if behind is None else behind
        else:
            index += 1


def _thought_end(text: str, tags: Sequence[_Tag], opening: int) -> tuple[int | None, int]:
    """The tag behind a block and where the block ends; None and the text's end if no tag closes it.

    Without enough ends for what is nested, it ends at the last of them.
    """
    depth = 0
    last: tuple[int | None, int] = (None, len(text))
    for index in range(opening, len(tags)):
        if tags[index].name != tags[opening].name:
            continue
        depth += -1 if tags[index].closes else 1
        if tags[index].closes:
            last = (index + 1, tags[index].end)
        if depth == 0:
            break
    return last


def _begins(text: str, at: int) -> bool:
    """Whether a line or a sentence begins at ``at``, so that a tag there is more than a word in a sentence."""
    before = text[max(0, at - 40) : at].rstrip(" \t")
    return not before or before.endswith(("\n", "\r", ">", *_SENTENCE_ENDS))


def _stands_alone(text: str, tag: _Tag) -> bool:
    before, behind = text[max(0, tag.start - 80) : tag.start].rstrip(" \t"), text[tag.end : tag.end + 80].lstrip(" \t")
    return (not before or before[-1] in "\r\n") and (not behind or behind[0] in "\r\n")


# Elements


def _elements(text: str, start: int, end: int, tags: Sequence[_Tag]) -> Iterator[Region]:
    """The regions of ``text[start:end]``, which is no thought, of all the tags."""
    if start == end:
        return
    first, behind = (bisect_left(tags, place, key=lambda tag: tag.start) for place in (start, end))
    cuts = _cuts(text, end, tags[first:behind])
    if not cuts or TAG.sub("", text[start : cuts[0].start]).strip():
        cuts.insert(0, _Cut(start, start, None, is_open=False))
    bounds = [start, *(cut.start for cut in cuts[1:]), end]
    found = [
        Region(first, last, max(first, cut.body), cut.kind)
        for cut, (first, last) in zip(cuts, pairwise(bounds), strict=True)
    ]
    yield from _with_heads(text, [_as_it_is(text, region) for region in found])


def _parting(text: str, tags: Sequence[_Tag]) -> Iterator[_Tag]:
    """The tags of elements, without those that are only named and those in rows of Markdown tables."""
    closed = {tag.name for tag in tags if tag.closes} | _VOID
    line_start = seen = 0
    for tag in tags:
        if (newline := text.rfind("\n", seen, tag.start)) >= 0:
            line_start = newline + 1
        seen = tag.start
        is_word = text[tag.start - 1 : tag.start] == " " and text[tag.end : tag.end + 1] == " "
        in_table = text[line_start : line_start + 1] == "|"
        if tag.name not in _THOUGHT_NAMES and not in_table and (tag.name in closed or not is_word):
            yield tag


def _cuts(text: str, end: int, tags: Sequence[_Tag]) -> list[_Cut]:
    """Where regions begin: at opening tags, several in a row together, and behind closing ones."""
    cuts: list[_Cut] = []
    before: int | None = None  # where the tag before ended that belongs to the last cut
    inside: str | None = None  # a row or preformatted text, in which nothing else parts
    in_item = False
    closed = {tag.name for tag in tags if tag.closes}
    for tag in tags:
        if (inside == "tr" and tag.name not in _ROW_ENDS) or (
            inside == "pre" and not (tag.closes and tag.name == "pre")
        ):
            before = None
            continue
        follows = before is not None and bool(cuts) and not text[before : tag.start].strip()
        opens = not tag.closes and tag.name not in _VOID
        in_item = tag.name in _ITEMS if opens and tag.name in _ITEMS else in_item and tag.name not in _LIST_ENDS
        inside = tag.name if opens and (tag.name == "tr" or (tag.name == "pre" and "pre" in closed)) else None
        _add(cuts, tag, _kind(tag, in_item=in_item) if opens else _flow(in_item=in_item), opens=opens, follows=follows)
        before = tag.end
    while cuts and not text[cuts[-1].start : end].strip():
        cuts.pop()
    return cuts


def _add(cuts: list[_Cut], tag: _Tag, kind: UnitKind | None, *, opens: bool, follows: bool) -> None:
    if not follows:
        cuts.append(_Cut(tag.start if opens else tag.end, tag.end, kind, is_open=opens))
        return
    last = cuts[-1]
    if opens and last.is_open:
        last.kind = kind or last.kind
    else:
        last.start, last.kind, last.is_open = tag.start if opens else tag.end, kind, opens
    last.body = tag.end


def _kind(tag: _Tag, *, in_item: bool) -> UnitKind | None:
    if tag.name == "tr":
        return UnitKind.TABLE_ROW
    if tag.name == "pre":
        return UnitKind.CODE
    return UnitKind.HEADING if tag.name in _HEADINGS else _flow(in_item=in_item)


def _flow(*, in_item: bool) -> UnitKind | None:
    return UnitKind.LIST_ITEM if in_item else None


def _as_it_is(text: str, region: Region) -> Region:
    """A heading that does not look like one is read as a paragraph."""
    if region.kind is not UnitKind.HEADING:
        return region
    title = TAG.sub("", text[region.start : region.end]).strip()
    is_title = len(title) <= _TITLE_LIMIT and not title.endswith(_NEVER_OF_A_TITLE)
    return region if is_title else replace(region, kind=None)


def body_end(text: str, region: Region) -> int:
    """Where the text of a region ends, before the tags that close it."""
    end = region.end
    while True:
        last = text[max(region.body, end - _LONGEST_TAG) : end].rstrip()
        at = last.rfind("<")
        if at < 0 or not _CLOSING.fullmatch(last, at):
            return end
        end = max(region.body, end - _LONGEST_TAG) + at


def _with_heads(text: str, found: Sequence[Region]) -> Iterator[Region]:
    """The first row of a table is a heading if its cells are heads and a row follows."""
    for region, behind in pairwise((*found, None)):
        if region is None:
            continue
        if region.kind is UnitKind.TABLE_ROW and behind is not None and behind.kind is UnitKind.TABLE_ROW:
            cells = {cell.lower() for cell in _CELL.findall(text, region.start, region.end)}
            if cells == {"th"}:
                yield replace(region, kind=UnitKind.HEADING)
                continue
        yield region
