"""What ``gasp eval`` does with a file of results that have labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from gasp_core.gasp_rag.labelled import read_labelled
from gasp_core.gasp_rag.metrics import evaluate


def evaluate_results(
    path: Path, *, label_column: str, score_column: str, threshold: float | None, as_json: bool
) -> Iterator[str]:
    """Measure and yield the lines to print: a figure each, or one JSON object.

    With a ``threshold`` also what flagging strictly below it finds. Raises InputError.
    """
    labelled = read_labelled(path, label_column=label_column, score_column=score_column)
    suspicions = [-score for score in labelled.scores]
    # A suspicion counts from its threshold on, a sensitivity is flagged below its own: the next number makes it strict.
    at_least = None if threshold is None else math.nextafter(-threshold, math.inf)
    found = evaluate(labelled.labels, suspicions, threshold=at_least)
    found |= {"without_label": labelled.without_label, "without_score": labelled.without_score}
    if as_json:  # which has no NaN
        yield json.dumps({name: None if math.isnan(value) else value for name, value in found.items()})
        return
    for name, value in found.items():
        yield f"{name:<14} {value:.4f}" if isinstance(value, float) else f"{name:<14} {value}"
