"""The seam for review tools: what an adapter of labels is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload


@dataclass(frozen=True, slots=True)
class Adapted:
    """What a row holds: ``bundles`` of rows of the native form, and what of it could not be read.

    The rows of a bundle are one act of one reviewer, such as an annotation of several sentences: if one of them is
    refused, none of them counts. ``passed_over`` counts what the reviewer said that is not about our labels.
    """

    bundles: tuple[tuple[JsonObject, ...], ...] = ()
    faults: tuple[UnusablePayload, ...] = ()
    passed_over: int = 0


class LabelAdapter(Protocol):
    """Turns what one tool writes into rows of the native form. Write one and list it in ``LABEL_ADAPTERS``."""

    @property
    def name(self) -> str:
        """One fixed word."""

    def matches(self, row: JsonObject) -> bool:
        """Whether the row is of this form. The first adapter that says so gets the row."""

    def adapt(self, row: JsonObject) -> Adapted:
        """Return rows under the field names of ``ReviewLabel``, values still unchecked; none if it holds no label.

        Raises UnusablePayload (wrong_shape) for a row that it recognises but cannot read.
        """
