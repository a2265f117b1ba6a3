"""The state of a LangGraph, or any log that has a conversation as ``messages``, whatever framework's they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.adapters.adapter import Finding
from schemas.adapters.conversation import exchanges_of, holds_answer
from schemas.adapters.flat import FLAT_NAMES, spelled
from schemas.headers import Headers
from schemas.payload import JsonObject


@dataclass(frozen=True, slots=True)
class LangGraphAdapter:
    """Reads rows whose ``messages`` hold the answer; a row that has one of its own, and passages, is a flat one."""

    name: str = "langgraph"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether a model answers among the messages, and no other field holds answer and passages."""
        if not holds_answer(row.get("messages")):
            return False
        row = spelled(row)
        return not any(name in row for name in FLAT_NAMES.answer) or _passages_name(row) is None

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give an exchange for each answered turn. Raises UnusablePayload (wrong_shape)."""
        row = spelled(row)
        name = _passages_name(row)
        rest = {key: value for key, value in row.items() if key != name}
        return exchanges_of(rest, "messages", FLAT_NAMES, beside=row[name] if name else None)


def _passages_name(row: JsonObject) -> str | None:
    return next((name for name in FLAT_NAMES.passages if row.get(name) is not None), None)
