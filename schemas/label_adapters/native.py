"""Our own form, ``gasp.review-label.v1``."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.adapters.fields import wrong_shape
from schemas.envelope import JsonObject
from schemas.label_adapters.adapter import Adapted
from schemas.review_label import REVIEW_LABEL_SCHEMA, ReviewLabel

_FAMILY = REVIEW_LABEL_SCHEMA.rpartition(".")[0] + "."
_FIELDS = {field.alias or name for name, field in ReviewLabel.model_fields.items()}


@dataclass(frozen=True, slots=True)
class NativeLabelAdapter:
    """Reads rows that name our schema. Fields that the contract does not know are passed over."""

    name: str = "native"

    def matches(self, row: JsonObject) -> bool:
        """Whether the row names a version of our schema."""
        schema = row.get("schema")
        return isinstance(schema, str) and schema.startswith(_FAMILY)

    def adapt(self, row: JsonObject) -> Adapted:
        """Return the row. Raises UnusablePayload (wrong_shape) for another version."""
        if row.get("schema") != REVIEW_LABEL_SCHEMA:
            raise wrong_shape("schema", f"must be {REVIEW_LABEL_SCHEMA}")
        return Adapted((({name: value for name, value in row.items() if name in _FIELDS},),))
