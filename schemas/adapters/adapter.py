"""The seam for logging formats: what an adapter is."""

from __future__ import annotations

from typing import Protocol

from schemas.envelope import JsonObject
from schemas.headers import Headers


class Adapter(Protocol):
    """Turns one logging format into the native form. To add a format, write one and list it in ``ADAPTERS``."""

    @property
    def name(self) -> str:
        """One fixed word, stored with every interaction that the adapter read."""

    def matches(self, row: JsonObject, headers: Headers) -> bool:
        """Whether the row is of this format. The first adapter that says so gets the row."""

    def adapt(self, row: JsonObject) -> JsonObject:
        """Return the row under the field names of ``Interaction``, values still unchecked.

        ``interaction_id``, ``app`` and ``occurred_at`` may be missing, and ``occurred_at`` may be in any form that
        ``parse_timestamp`` reads. Fields that the contract does not know belong into ``metadata``.
        Raises UnusablePayload (wrong_shape) for a row that it recognises but cannot read.
        """
