"""Which dead letters are meant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """What a letter must meet to be meant; what is None or empty asks for nothing.

    ``since`` and ``until`` bound the time of rejection, ``until`` excluded. ``topic``, ``partition`` and ``offset`` are
    where the message lay when it was rejected. ``detail`` is a part of the letter's detail, in upper or lower case.
    """

    reasons: frozenset[RejectReason] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    detail: str | None = None

    @property
    def means_all(self) -> bool:
        """Whether it asks for nothing."""
        return self == LetterFilter()

    def matches(self, facts: DeadLetter) -> bool:
        """Whether a letter with these facts is meant."""
        return all(
            (
                not self.reasons or facts.reason in self.reasons,
                self.since is None or facts.rejected_at >= self.since,
                self.until is None or facts.rejected_at < self.until,
                self.topic in {None, facts.topic},
                self.partition in {None, facts.partition},
                self.offset in {None, facts.offset},
                self.detail is None or self.detail.casefold() in facts.detail.casefold(),
            )
        )
