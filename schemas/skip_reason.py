"""Why a message says nothing that could be audited, and is in order all the same, as one fixed word."""

from __future__ import annotations

from enum import StrEnum


class SkipReason(StrEnum):
    """Why a message, or a trace, is skipped before anything is scored.

    A tombstone is a key without a value, as compacted topics have them. A deletion is an event of change data capture:
    rows were deleted, or the whole table was emptied. In a trace that is not RAG nothing was retrieved; one without an
    answer retrieved something and logs no answer to it (it failed, or the model's step is not logged); and where
    passages are without text the log names them only, and no document store has what they say. A streamed part is some
    of what a step gave, which the end of the step tells whole.
    """

    TOMBSTONE = "tombstone"
    DELETION = "cdc_delete"
    NOT_RAG = "not_rag"
    NO_ANSWER = "no_answer"
    PASSAGES_WITHOUT_TEXT = "passages_without_text"
    STREAMED_PART = "streamed_part"
