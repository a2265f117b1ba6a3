"""What is added to a detector's score for an app: a linear model of a sentence's terms, learned from its reviewers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from gasp_core.detectors.fused_model import Term
from gasp_core.detectors.readout.terms import TERMS as TEXT_TERMS

# What a correction may read, in the order that a sentence's terms are stored in.
TERMS = (*TEXT_TERMS, "surprisal")


@dataclass(frozen=True, slots=True)
class Correction:
    """Added to the score, which stays the log-odds of being grounded: 0 for a sentence whose terms are usual.

    ``terms`` are those of TERMS that it reads, each with its usual mean and deviation. ``learned_until`` is the newest
    moment of the labels that it was learned from, in seconds as they have it. Raises ValueError for what could not be
    reckoned.
    """

    terms: tuple[Term, ...]
    learned_until: float = 0.0

    def __post_init__(self) -> None:
        """Nothing that is put in force may end the worker that judges by it."""
        if unknown := {term.name for term in self.terms} - set(TERMS):
            raise ValueError(f"no term {', '.join(sorted(unknown))}")
        numbers = [number for term in self.terms for number in (term.mean, term.deviation, term.coefficient)]
        if not all(map(math.isfinite, numbers)) or any(term.deviation <= 0 for term in self.terms):
            raise ValueError("a correction needs finite numbers, and deviations above 0")

    def of(self, values: Sequence[float]) -> float:
        """What is added for a sentence with these values, finite and in the order of TERMS."""
        known = dict(zip(TERMS, values, strict=True))
        return math.fsum(term.log_odds(known[term.name]) for term in self.terms)

    def to_json(self) -> dict[str, Any]:
        """As the database has it."""
        return {"terms": [asdict(term) for term in self.terms], "learned_until": self.learned_until}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What ``to_json`` gave. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(tuple(Term(**term) for term in value["terms"]), value["learned_until"])
