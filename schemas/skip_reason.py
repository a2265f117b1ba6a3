"""Why a message says nothing that could be audited, and is in order all the same, as one fixed word."""

from __future__ import annotations

from enum import StrEnum


class SkipReason(StrEnum):
    """Why a message is skipped before anything is read from it: what it stands for has been deleted where it came from.

    A tombstone is a key without a value, as compacted topics have them. A deletion is an event of change data capture:
    rows were deleted, or the whole table was emptied.
    """

    TOMBSTONE = "tombstone"
    DELETION = "cdc_delete"
