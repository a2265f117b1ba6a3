"""Scorer identity: everything a score depends on. Scores of different identities are never compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ScorerIdentity:
    """What produced a score. Thresholds belong to one identity and never apply to another.

    ``revision`` names the exact model: weights, settings, tokenizer. ``template`` is the version of the prompt, and
    ``method`` of the computation (segmentation, passes, aggregation), with limits on what is read and the detector.
    """

    model: str
    revision: str
    dtype: str
    template: str
    method: str

    @property
    def label(self) -> str:
        """A short name for people, such as ``SmolLM2-135M-Instruct@1a2b3c4d float32 plain-1 gasp-3``."""
        return f"{self.model}@{self.revision[:8]} {self.dtype} {self.template} {self.method}"

    @property
    def computation(self) -> ScorerIdentity:
        """The same whatever its limits: these say how much of an exchange is read, and nothing of how."""
        return replace(self, method=self.method.split()[0])


def listed(scorers: Iterable[ScorerIdentity]) -> str:
    """Several for people: each model in each dtype and template once, whatever its method."""
    return ", ".join(dict.fromkeys(f"{one.model}@{one.revision[:8]} {one.dtype} {one.template}" for one in scorers))
