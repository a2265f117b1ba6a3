"""What the tests of vendors' formats have in common: one exchange, and reading a row as the worker does."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from schemas.decoding import Decoded, Rejected, Result, Skipped, decode_payload
from schemas.interaction import Interaction
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason

QUESTION = "Until when can I bring it back?"
HOURS, PRICES = "The Belmora museum opens at nine.", "Children pay nothing on Sundays."
FIRST, SECOND = "It opens at nine.", "On Sundays children pay nothing."
ANSWER = f"{FIRST} {SECOND}"
RECEIVED_AT = datetime(2026, 11, 30, tzinfo=UTC)


def read(row: Any) -> Result:
    """What becomes of the only result of a row."""
    value = json.dumps(row).encode()
    reading = decode_payload(value, (), max_bytes=1 << 22, default_app="default", received_at=RECEIVED_AT)
    (result,) = reading.results
    return result


def adapter_of(row: Any) -> str:
    """The name of the format that the row was read as."""
    result = read(row)
    assert isinstance(result, Decoded), result
    return result.adapter


def exchange(row: Any) -> Interaction:
    """The exchange in a row."""
    result = read(row)
    assert isinstance(result, Decoded), result
    return result.interaction


def refusal(row: Any) -> str:
    """What is said of a row that is of the wrong shape."""
    result = read(row)
    assert isinstance(result, Rejected), result
    assert result.reason is RejectReason.WRONG_SHAPE
    return result.detail


def skipped(row: Any) -> SkipReason:
    """Why a row is skipped."""
    result = read(row)
    assert isinstance(result, Skipped), result
    return result.reason


def passages(found: Interaction) -> list[tuple[str, str, float | None]]:
    """The passages by id, text and score."""
    return [(one.id, one.text, one.score) for one in found.passages]


def said(found: Interaction) -> str:
    """The answer without its marks."""
    text = found.answer
    for start, end in reversed(found.marks):
        text = text[:start] + text[end:]
    return text
