"""Samples of Ragas, single-turn and multi-turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from schemas.adapters.adapter import Finding
from schemas.adapters.conversation import exchanges_of
from schemas.adapters.fields import rename
from schemas.adapters.flat import FLAT_NAMES
from schemas.headers import Headers
from schemas.payload import JsonObject

_NAMES = replace(FLAT_NAMES, question=("user_input",), passages=("retrieved_contexts",), answer=("response",))
_LIKENESS = "a Ragas sample"


@dataclass(frozen=True, slots=True)
class RagasAdapter:
    """Reads samples as Ragas writes them. ``reference_contexts`` are what should have been retrieved: never read."""

    name: str = "ragas"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether a row has the user's input and what Ragas alone calls so, or a conversation as that input."""
        asked = row.get("user_input")
        return isinstance(asked, list) or (asked is not None and "response" in row and "retrieved_contexts" in row)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the sample's exchange, or one for each answered turn. Raises UnusablePayload (wrong_shape)."""
        if isinstance(row["user_input"], list) and row.get("response") is None:
            rest = {key: value for key, value in row.items() if key != "retrieved_contexts"}
            return exchanges_of(rest, "user_input", _NAMES, beside=row.get("retrieved_contexts"), likeness=_LIKENESS)
        return (rename(row, _NAMES, likeness=_LIKENESS),)
