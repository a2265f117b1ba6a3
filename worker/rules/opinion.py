"""What a second opinion is, and the interface of what gives one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class OpinionLabel(StrEnum):
    """What a verifier says of a sentence. A sentence that is supported in part is not supported."""

    SUPPORTED = "supported"
    PARTLY = "partly"
    UNSUPPORTED = "unsupported"
    CANT_TELL = "cant_tell"


@dataclass(frozen=True, slots=True)
class Opinion:
    """A verifier's word on one sentence. ``p_unsupported`` is in [0, 1], None if the verifier gives a label alone."""

    label: OpinionLabel
    p_unsupported: float | None
    verifier: str


class OpinionFailed(Exception):  # noqa: N818 - reads as the fact it states
    """There is no opinion. The message is a fixed word, a status or a type of error, and never text of a message."""


class SecondOpinion(Protocol):
    """Whoever gives second opinions. Called from one thread."""

    @property
    def verifier(self) -> str:
        """Who it is: everything that an opinion depends on. Opinions of different verifiers are never mixed."""
        ...

    def judge(self, question: str, passages: Sequence[str], answer: str, sentence: str) -> Opinion:
        """Say whether the passages support the sentence of the answer; those that come first matter most.

        Raises OpinionFailed.
        """
        ...
