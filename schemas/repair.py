"""What decoding puts right instead of rejecting, one fixed word each."""

from __future__ import annotations

from enum import StrEnum


class Repair(StrEnum):
    """A repair. The interaction that results says less, or says it differently, than what was logged."""

    BOM = "bom"
    ID_DERIVED = "id_derived"
    ID_SUFFIXED = "id_suffixed"
    LONE_SURROGATE = "lone_surrogate"
    NUL = "nul"
    OCCURRED_AT_DROPPED = "occurred_at_dropped"
