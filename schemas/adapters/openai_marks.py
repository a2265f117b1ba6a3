"""Marks that OpenAI's models leave in a text, where its annotations say that they are citations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.values import as_object, as_text

# 【4:0†source】 and 【12†returns.md】
_FILE_MARK = re.compile(r"【\d{1,5}(?::\d{1,5})?†[^【】]{0,200}】")
_MAX_LINK_CHARS = 4_000


def annotated_marks(text: str, annotations: JsonValue, start: int = 0) -> list[tuple[int, int]]:
    """Return the spans of the marks in ``text``, moved by ``start``.

    A citation of a file is cut where the text has it written out; one of a page where its span holds the page's
    address, for elsewhere the span is of what is said about it.
    """
    cited = [one for one in annotations if isinstance(one, dict)] if isinstance(annotations, list) else []
    marks = [span for one in cited for span in _own_span(text, one)]
    if any(one.get("type") == "file_citation" for one in cited):
        marks += [found.span() for found in _FILE_MARK.finditer(text)]
    return [(start + first, start + behind) for first, behind in marks]


def _own_span(text: str, annotation: JsonObject) -> Iterator[tuple[int, int]]:
    """The annotation's own span, if what stands there is a mark."""
    page = as_object(annotation.get("url_citation")) or annotation
    first, behind = (as_index(page.get(name), text) for name in ("start_index", "end_index"))
    if first is None or behind is None or not first < behind <= first + _MAX_LINK_CHARS:
        return
    shown, address = text[first:behind], as_text(page.get("url"))
    if annotation.get("type") == "url_citation" and address is not None and address in shown:
        # The end may be that of the last character or the one behind it.
        is_open = shown.startswith("(") and shown.count("(") > shown.count(")") and text[behind : behind + 1] == ")"
        yield first, behind + is_open
    elif annotation.get("type") in ("file_citation", "file_path") and shown == annotation.get("text"):
        yield first, behind


def as_index(value: JsonValue, text: str) -> int | None:
    """Return a place in the text, its end among them."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= len(text) else None
