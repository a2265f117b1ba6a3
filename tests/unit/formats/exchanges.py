"""What tests of formats say of the exchanges that were read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pydantic import JsonValue

from schemas.decoding import Decoded, Rejected, Skipped, decode_payload
from schemas.interaction import Interaction
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason

RECEIVED_AT = datetime(2026, 12, 1, tzinfo=UTC)
Facts = tuple[str, str, list[tuple[str, str, float | None]]]


def results_of(row: JsonValue) -> tuple[Decoded | Rejected | Skipped, ...]:
    """What becomes of a message that holds the row."""
    value = json.dumps(row).encode()
    return decode_payload(value, (), max_bytes=1_000_000, default_app="default", received_at=RECEIVED_AT).results


def read(row: JsonValue, adapter: str) -> Interaction:
    """The only exchange of a row, which the adapter of this name must have read."""
    (result,) = results_of(row)
    assert isinstance(result, Decoded), result
    assert result.adapter == adapter
    return result.interaction


def facts(interaction: Interaction) -> Facts:
    """Question, answer, and the passages as id, text and score."""
    passages = [(one.id, one.text, one.score) for one in interaction.passages]
    return interaction.question, interaction.answer, passages


def detail_of(row: JsonValue) -> str:
    """Why a row is of the wrong shape."""
    (result,) = results_of(row)
    assert isinstance(result, Rejected), result
    assert result.reason is RejectReason.WRONG_SHAPE
    return result.detail


def skipped(row: JsonValue) -> SkipReason:
    """Why there is nothing to audit in a row."""
    (result,) = results_of(row)
    assert isinstance(result, Skipped), result
    return result.reason


def named(document_id: str | None, text: str, **more: JsonValue) -> dict[str, JsonValue]:
    """A document as LangChain dumps it."""
    return {"id": document_id, "metadata": {**more}, "page_content": text, "type": "Document"}


def constructor(name: str, /, **fields: JsonValue) -> dict[str, JsonValue]:
    """An object as LangChain's ``dumps`` writes it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", name], "kwargs": {**fields}}
