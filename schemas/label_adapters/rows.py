"""Plain rows, as of a table that somebody filled in: numbers may be text, and what is blank is absent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.label_adapters.adapter import Adapted
from schemas.review_label import MAX_EXTERNAL_ID_CHARS
from schemas.values import as_identifier

ROW_TOOL = "file"
LABEL_COLUMN = "label"

# In order of precedence.
_TEXTS = {
    "tool": ("tool",),
    "external_id": ("external_id",),
    "action": ("action",),
    "task_id": ("task_id",),
    "app": ("app",),
    "interaction_id": ("interaction_id",),
    "label": (LABEL_COLUMN,),
    "detail": ("detail",),
    "reviewer": ("reviewer", "annotator"),
    "note": ("note", "comment"),
}
_NUMBERS = {"revision": ("revision",), "sentence_index": ("sentence_index",)}
_TIME = ("labelled_at", "at")


@dataclass(frozen=True, slots=True)
class RowLabelAdapter:
    """Reads any row with a label. The external id is made of reviewer and place where there is none."""

    name: str = "row"

    def matches(self, row: JsonObject) -> bool:
        """Whether there is a field for the label, or an action."""
        return LABEL_COLUMN in row or "action" in row

    def adapt(self, row: JsonObject) -> Adapted:
        """Return the row; one whose label is blank, in a table that is half filled in, is no label."""
        native: JsonObject = {name: _first(row, names) for name, names in _TEXTS.items()}
        if native["label"] is None and native["action"] is None:
            return Adapted()
        native["action"] = native["action"] or "label"
        native |= {name: _number(_first(row, names)) for name, names in _NUMBERS.items()}
        native["labelled_at"] = _first(row, _TIME)
        native["tool"] = native["tool"] or ROW_TOOL
        native["external_id"] = native["external_id"] or _external_id(native)
        return Adapted(((native,),))


def _first(row: JsonObject, names: tuple[str, ...]) -> JsonValue:
    for name in names:
        value = row.get(name)
        if value is not None and not (isinstance(value, str) and not value.strip()):
            return _text(value)
    return None


def _text(value: JsonValue) -> JsonValue:
    """Ids that are numbers in JSON are text in the contract; text loses the space around it."""
    return (as_identifier(value) or value) if isinstance(value, int | float) else _stripped(value)


def _stripped(value: JsonValue) -> JsonValue:
    return value.strip() if isinstance(value, str) else value


def _number(value: JsonValue) -> JsonValue:
    """A spreadsheet may write 3 as 3.0."""
    text = value.removesuffix(".0") if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else value


def _external_id(native: JsonObject) -> str:
    place = native["task_id"] or f"{native['app']}:{native['interaction_id']}:{native['revision'] or 1}"
    made = f"{native['reviewer']}:{place}:{native['sentence_index']}"
    if len(made) <= MAX_EXTERNAL_ID_CHARS:
        return made
    return f"sha256:{hashlib.sha256(made.encode(errors='replace')).hexdigest()}"
