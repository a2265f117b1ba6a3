"""gasp-rag's own parameters, and which of them a caller has named."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from gasp_core.gasp_rag.sentence_scores import TWO_PASS_FEATURES, Feature
from gasp_core.template import PLAIN, PromptTemplate


class Unnamed(Enum):
    """What stands for a parameter that the caller has not named: its default alone would not tell."""

    UNNAMED = "unnamed"

    def __repr__(self) -> str:
        return self.value


UNNAMED: Final = Unnamed.UNNAMED


@dataclass(frozen=True, slots=True)
class Parameters:
    """How gasp-rag makes and judges a sensitivity, with its defaults. Raises ValueError for what is out of range."""

    k_chunks: int = 5
    threshold: float | None = None
    economical: bool = False
    sensitivity_feature: str = Feature.MAX_DROP.value
    max_ctx_tokens: int = 1800
    max_ans_tokens: int = 256
    template: PromptTemplate = PLAIN

    def __post_init__(self) -> None:
        if self.sensitivity_feature not in list(Feature):
            known = ", ".join(Feature)
            raise ValueError(f"sensitivity_feature must be one of {known}, not {self.sensitivity_feature!r}")
        if self.k_chunks < 1:
            raise ValueError(f"k_chunks must be at least 1, not {self.k_chunks}")

    @property
    def feature(self) -> str:
        """The feature that is reported: the gap where the one that was asked for is not computed."""
        falls_back = self.economical and self.sensitivity_feature not in TWO_PASS_FEATURES
        return str(Feature.GAP if falls_back else self.sensitivity_feature)


def only_named(**parameters: object) -> dict[str, Any]:
    """Those that the caller has named, by name."""
    return {name: value for name, value in parameters.items() if value is not UNNAMED}
