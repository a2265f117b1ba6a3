"""Test cases of DeepEval, in snake and camel case, alone and as conversations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.conversation import exchanges_of, holds_answer
from schemas.adapters.fields import rename, wrong_shape
from schemas.adapters.flat import FLAT_NAMES
from schemas.adapters.spelling import respelled
from schemas.headers import Headers
from schemas.payload import JsonObject

_NAMES = replace(FLAT_NAMES, question=("input",), passages=("retrieval_context",), answer=("actual_output",))
_LIKENESS = "a DeepEval test case"
_OTHER_PASSAGES = set(FLAT_NAMES.passages) - {"retrieval_context", "context"}
# What ``save_as`` alone writes; its JSON lines have lists joined with a bar.
_SAVED = "source_file"
_BAR = "|"
# A bar between two texts that surely are two: the first one ends as sentences do, and the second one begins at once.
_BORDER = re.compile(r"(?<=[.!?…。！？\"'”’)\]])\|(?=[^\s|])")


@dataclass(frozen=True, slots=True)
class DeepEvalAdapter:
    """Reads test cases as DeepEval dumps and saves them. ``context`` is the ideal one: never read."""

    name: str = "deepeval"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether a row has an actual output and no passages that DeepEval does not know, or turns with an answer."""
        if holds_answer(row.get("turns")):
            return True
        row = _spelled(row)
        return "actual_output" in row and _OTHER_PASSAGES.isdisjoint(row)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange of a test case, or one for each answered turn. Raises UnusablePayload (wrong_shape)."""
        if "turns" in row:
            return exchanges_of(row, "turns", _NAMES, likeness=_LIKENESS)
        row = _spelled(row)
        joined = row.get("retrieval_context")
        if _SAVED in row and isinstance(joined, str) and _BAR in joined:
            row = {**row, "retrieval_context": _parted(joined)}
        return (rename(row, _NAMES, likeness=_LIKENESS),)


def _spelled(row: JsonObject) -> JsonObject:
    return respelled(row, (*_NAMES.all, _SAVED))


def _parted(joined: str) -> list[JsonValue]:
    """The passages of a joined text, if every bar in it surely joins two of them."""
    parts = _BORDER.split(joined)
    if any(_BAR in part for part in parts):
        rule = 'passages joined with "|", which they may hold, too; save the data set as json, which keeps lists'
        raise wrong_shape("retrieval_context", rule)
    return [*parts]
