"""Our own form, ``gasp.interaction.v1``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import FieldNames, rename, wrong_shape
from schemas.headers import Headers
from schemas.interaction import INTERACTION_SCHEMA
from schemas.payload import JsonObject

NATIVE_NAMES = FieldNames(
    interaction_id=("interaction_id",),
    app=("app",),
    occurred_at=("occurred_at",),
    question=("question",),
    passages=("passages",),
    answer=("answer",),
    generator_model=("generator_model", "generator", "model"),
)

_FAMILY = INTERACTION_SCHEMA.rpartition(".")[0] + "."
_FIELDS = {
    "interaction_id",
    "app",
    "occurred_at",
    "question",
    "passages",
    "answer",
    "answer_marks",
    "metadata",
    *NATIVE_NAMES.generator_model,
}


@dataclass(frozen=True, slots=True)
class NativeAdapter:
    """Reads rows that name our schema, and rows without a schema that have passages and no field but ours."""

    name: str = "native"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row names a version of our schema, or uses our field names only."""
        schema = row.get("schema")
        if schema is None:
            return {"answer", "passages"} <= row.keys() and row.keys() - {"schema"} <= _FIELDS
        return isinstance(schema, str) and schema.startswith(_FAMILY)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row without its schema name. Raises UnusablePayload (wrong_shape), also for another version."""
        rest = dict(row)
        if rest.pop("schema", None) not in (None, INTERACTION_SCHEMA):
            raise wrong_shape("schema", f"must be {INTERACTION_SCHEMA}")
        marks = rest.pop("answer_marks", None)
        native = rename(rest, NATIVE_NAMES, likeness=INTERACTION_SCHEMA)
        return (native if marks is None else {**native, "answer_marks": marks},)
