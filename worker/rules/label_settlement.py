"""What became of a record of the label topic: the values that one transaction writes."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.review_label import ReviewLabel
from worker.rules.settlement import Settlement

# The outcome of what says nothing: a blank label, a skipped annotation, another event of the tool.
NO_LABEL = "no_label"


@dataclass(frozen=True, slots=True)
class LabelSettlement(Settlement):
    """One record, with the labels of it that are stored: those of a dead letter are what was right of it."""

    labels: tuple[ReviewLabel, ...] = ()
