"""JSON lines: several JSON objects in one value, one a line."""

from __future__ import annotations

import re

from schemas.errors import UnusablePayload
from schemas.reject_reason import RejectReason

MAX_ROWS = 1_000
"""How many exchanges one message may hold."""

_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[\t\r ]*\{")
# White space, and the bytes of a byte-order mark.
_BLANK = b"\t\r \xef\xbb\xbf"


def json_lines(text: bytes) -> list[bytes] | None:
    """Return the lines that are not blank if there are two or more, and each begins as an object does; else None.

    No line of an object that is laid out over several begins so but the first. Raises UnusablePayload (too_many_rows).
    """
    if not text.lstrip(_BLANK + b"\n").startswith(b"{"):
        return None
    lines = [line for line in text.split(b"\n") if line.strip(_BLANK)]
    if len(lines) < 2 or not all(map(_OBJECT.match, lines)):
        return None
    if len(lines) > MAX_ROWS:
        raise too_many_rows()
    return lines


def too_many_rows() -> UnusablePayload:
    """Return the refusal of a message with more exchanges than it may hold."""
    return UnusablePayload(RejectReason.TOO_MANY_ROWS, f"more than {MAX_ROWS} rows in one message")
