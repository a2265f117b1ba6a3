"""What can go wrong in schemas.

SchemaError
├── UnusablePayload   a payload that is no interaction; decoding turns it into a rejection
│   └── NoValue       there is none: a tombstone, if the message has a key
└── NotADeadLetter    headers that do not describe a dead letter
"""

from __future__ import annotations

from schemas.reject_reason import RejectReason


class SchemaError(Exception):
    """Base of everything schemas raises on purpose."""


class UnusablePayload(SchemaError):  # noqa: N818 - reads as the fact it states
    """A payload that is no interaction. ``detail`` names the place and the rule, never what stood there."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class NoValue(UnusablePayload):
    """A message without a value, or one whose value is null, bare or as Kafka Connect writes it."""

    def __init__(self, detail: str) -> None:
        super().__init__(RejectReason.NULL_VALUE, detail)


class NotADeadLetter(SchemaError):  # noqa: N818 - reads as the fact it states
    """Headers that lack a fact of a dead letter, or hold one that cannot be read. ``fields`` names them."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        super().__init__(f"not the headers of a dead letter: {', '.join(fields)}")
        self.fields = fields
