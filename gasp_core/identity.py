"""Scorer identity: everything a score depends on. Scores of different identities are never compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScorerIdentity:
    """What produced a score. Thresholds belong to one identity and never apply to another.

    ``revision`` names the exact weights, ``template`` and ``method`` the versions of the prompt and of the
    computation (segmentation, passes, aggregation).
    """

    model: str
    revision: str
    dtype: str
    template: str
    method: str

    @property
    def label(self) -> str:
        """A short name for people, such as ``SmolLM2-135M-Instruct@1a2b3c4d float32 plain-1 gasp-2``."""
        return f"{self.model}@{self.revision[:8]} {self.dtype} {self.template} {self.method}"


def listed(scorers: Iterable[ScorerIdentity]) -> str:
    """Several for people: each model in each dtype and template once, whatever its method."""
    return ", ".join(dict.fromkeys(f"{one.model}@{one.revision[:8]} {one.dtype} {one.template}" for one in scorers))
