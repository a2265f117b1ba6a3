"""Whether a passage says anything at all.

What loggers and retrievers write where they have nothing would otherwise be scored as if it were evidence: characters
that nobody sees, markup without text, and the words of programs and people for nothing. This module is the one place
that knows them. A passage in doubt is evidence: ``No`` and ``0`` are.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

from gasp_core.text.placeholders import PLACEHOLDERS, bare_words

# Longer passages say something. Both bounds are far above what is looked for.
_MAX_PLACEHOLDER_CHARS = 400
_MAX_RECORD_CHARS = 4_000

# Letters and a sign by their category in Unicode, and yet nothing is seen of them.
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc\ufffd")
_TAG = re.compile("<(?:!--|[A-Za-z/!?])")
_NAME = re.compile("[A-Za-z0-9:_.-]*")
_ENTITY = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_SPOKEN = re.compile(r"""\b(?:alt|title|aria-label|content|value)\s*=\s*["']?([^"'>]*)""", re.IGNORECASE)
_SILENT = ("script", "style", "template")
_ELEMENTS = frozenset(
    "a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption cite code col "  # noqa: SIM905 - read as words
    "colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure footer form h1 h2 "
    "h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map mark menu meta "
    "meter nav noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp script "
    "search section select slot small source span strong style sub summary sup svg table tbody td template textarea "
    "tfoot th thead time title tr track u ul var video wbr center font".split()
)
_BETWEEN = re.compile(r"""[\[\](){}<>"'`,;|\r\n\t]+""")


class PassageSkip(StrEnum):
    """Why a passage is no evidence, and not read."""

    BLANK = "blank"
    MARKUP = "markup"
    PLACEHOLDER = "placeholder"


def passage_skip(text: str) -> PassageSkip | None:
    """Why a passage of this text is no evidence; None if it says something. Takes time linear in its length.

    BLANK is no letter, digit or sign to be seen, MARKUP nothing but tags, comments and entities, PLACEHOLDER what
    stands for nothing: ``None``, ``N/A``, ``[]``, ``nicht verfügbar``, or a JSON record without a value.
    """
    if is_blank(text):
        return PassageSkip.BLANK
    shown = _shown(text)
    if is_blank(shown):
        return PassageSkip.MARKUP
    return PassageSkip.PLACEHOLDER if _is_placeholder(shown.strip()) else None


def is_blank(text: str) -> bool:
    """Whether nobody sees a letter, a digit or a sign of meaning in a text."""
    return not any(map(_is_seen, text))


def is_unseen(text: str) -> bool:
    """Whether there is nothing to see of a text at all."""
    return all(unicodedata.category(char)[0] in "CZM" or char in _UNSEEN for char in text)


def _is_seen(char: str) -> bool:
    category = unicodedata.category(char)
    return (category[0] in "LN" or category in {"So", "Sc"}) and char not in _UNSEEN


def _shown(text: str) -> str:
    """What a reader sees of marked-up text; of a long one all, if any of it is seen."""
    parts = _outside_tags(text)
    if len(text) <= _MAX_PLACEHOLDER_CHARS:
        return " ".join(parts)
    return "" if all(map(is_blank, parts)) else text


def _outside_tags(text: str) -> Iterator[str]:
    """The parts of a text between its tags, and what the tags themselves tell a reader."""
    at = 0
    while found := _TAG.search(text, at):
        yield _unescaped(text[at : found.start()])
        said, at = _tag(text, found.start())
        yield _unescaped(said)
    yield _unescaped(text[at:])


def _tag(text: str, start: int) -> tuple[str, int]:
    """What a tag or comment at ``start`` tells a reader, and where it ends."""
    if text.startswith("<!--", start):
        return "", _after(text, "-->", start)
    name = _NAME.match(text, start + 1).group().lower()  # type: ignore[union-attr]  # it may be empty, but matches
    end = _after(text, ">", start)
    if name in _SILENT:
        return "", _after(text, f"</{name}", end)
    tag = text[start:end]
    if text[start + 1] in "/!?":
        return "", end
    # What stands in an element of HTML is shown; of other XML the attributes are the data.
    return (" ".join(_SPOKEN.findall(tag)) if name in _ELEMENTS else tag.partition("=")[2]), end


def _after(text: str, wanted: str, start: int) -> int:
    """Where the next ``wanted`` ends; the end of the text if there is none."""
    found = text.find(wanted, start)
    return len(text) if found < 0 else found + len(wanted)


def _unescaped(text: str) -> str:
    """With the characters that entities stand for. Only whole ones: an ampersand is a character, too."""
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text


def _is_placeholder(text: str) -> bool:
    if len(text) <= _MAX_PLACEHOLDER_CHARS and all(map(_stands_for_nothing, _BETWEEN.split(text))):
        return True
    return text[:1] in "[{" and len(text) <= _MAX_RECORD_CHARS and _is_empty_record(text)


def _stands_for_nothing(piece: str) -> bool:
    """Whether a piece between brackets, quotes and commas has no word, or is a way to say nothing."""
    return is_blank(piece) or bare_words(piece) in PLACEHOLDERS


def _is_empty_record(text: str) -> bool:
    """Whether a text is a JSON object or array in which no value says anything."""
    try:
        pending = [json.loads(text)]
    except (ValueError, RecursionError):
        return False
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        elif value is not None and not (isinstance(value, str) and passage_skip(value)):
            return False
    return True
