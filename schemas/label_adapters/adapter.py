"""The seam for review tools: what an adapter of labels is."""

from __future__ import annotations

from typing import Protocol

from schemas.envelope import JsonObject


class LabelAdapter(Protocol):
    """Turns what one tool writes into rows of the native form. Write one and list it in ``LABEL_ADAPTERS``."""

    @property
    def name(self) -> str:
        """One fixed word."""

    def matches(self, row: JsonObject) -> bool:
        """Whether the row is of this form. The first adapter that says so gets the row."""

    def adapt(self, row: JsonObject) -> tuple[JsonObject, ...]:
        """Return rows under the field names of ``ReviewLabel``, values still unchecked; none if it holds no label.

        Raises UnusablePayload (wrong_shape) for a row that it recognises but cannot read.
        """
