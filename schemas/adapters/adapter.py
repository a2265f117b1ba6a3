"""The seam for logging formats: what an adapter is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from schemas.envelope import JsonObject
from schemas.headers import Headers
from schemas.skip_reason import SkipReason
from schemas.traces.piece import Piece

Finding: TypeAlias = JsonObject | Piece | SkipReason
"""One exchange in native form, values unchecked; steps of a trace; or why there is nothing to audit, in good order."""


class Adapter(Protocol):
    """Reads one logging format. To add a format, write one and list it in ``ADAPTERS``."""

    @property
    def name(self) -> str:
        """One fixed word, stored with every interaction that the adapter read."""

    def matches(self, row: JsonObject, headers: Headers) -> bool:
        """Whether the row is of this format. The first adapter that says so gets the row."""

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give what the row holds: one exchange or several, pieces of traces, or why it holds nothing.

        An exchange has the field names of ``Interaction``, its values still unchecked. ``interaction_id``, ``app`` and
        ``occurred_at`` may be missing, and ``occurred_at`` may be in any form that ``parse_timestamp`` reads. Fields
        that the contract does not know belong into ``metadata``.
        Raises UnusablePayload (wrong_shape) for a row that it recognises but cannot read.
        """
