"""How files for people are written: labels that come in, tasks that go out."""

from __future__ import annotations

from enum import StrEnum


class LabelFormat(StrEnum):
    """How a file of labels is written; ``auto`` looks at its beginning."""

    AUTO = "auto"
    CSV = "csv"
    JSONL = "jsonl"
    LABEL_STUDIO = "label-studio"


class ExportFormat(StrEnum):
    """``jsonl`` has one message of the contract gasp.review-task.v1 a line."""

    LABEL_STUDIO = "label-studio"
    CSV = "csv"
    JSONL = "jsonl"
