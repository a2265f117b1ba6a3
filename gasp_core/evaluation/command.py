"""What ``gasp eval`` does with a file of labelled answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gasp_core.evaluation.lines import attribution_lines, report_lines
from gasp_core.evaluation.plot import draw, require_picture
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.registry import detectors_named
from gasp_core.evaluation.run import Design, Models, Watch, load_models, measure, measure_attribution, needs_model

# What is measured if no detector is named: all that two passes and text can tell.
USUAL = ("gap", "jsd", "two-pass", "perplexity", "length", "lexical")
ATTRIBUTION = "attribution"


class Progress(Protocol):
    """Shows how far a task is, while it is open."""

    def __call__(self, description: str) -> AbstractContextManager[Watch]:
        """Open it for one task."""
        ...


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. ``detectors`` are names; ``plot`` is where a picture goes."""

    detectors: tuple[str, ...]
    model: str
    device: str
    dtype: str
    design: Design
    plot: Path | None = None
    attribution: bool = False
    as_json: bool = False


def evaluate_answers(path: Path, wish: Wish, progress: Progress) -> Iterator[str]:
    """Measure and yield the lines to print: tables, or one JSON object dataset -> detector -> figures.

    The file's name without its ending is that of the dataset. Raises InputError, ModelError.
    """
    if wish.plot is not None:
        require_picture(wish.plot)
    detectors = detectors_named(wish.detectors or (() if wish.attribution else USUAL))
    models = _models(wish) if wish.attribution or needs_model(detectors) else None
    entries: dict[str, Entry] = {}
    if detectors:
        with progress("reading answers") as watch:
            outcome = measure(path, detectors, models, wish.design, watch)
        entries |= outcome.entries
        if wish.plot is not None:
            rows = {name: outcome.measured.rows[name] for name in outcome.entries}
            draw(f"{path.stem}, by {outcome.measured.level}", rows, wish.plot)
        if not wish.as_json:
            yield from report_lines(path.stem, outcome.entries)
    if wish.attribution and models is not None:
        with progress("leaving one out") as watch:
            entries[ATTRIBUTION] = measure_attribution(path, models, wish.design, watch)
        if not wish.as_json:
            yield from attribution_lines(path.stem, entries[ATTRIBUTION])
    if wish.as_json:
        yield json.dumps({path.stem: entries}, allow_nan=False)


def _models(wish: Wish) -> Models:
    return load_models(wish.model, device=wish.device, dtype=wish.dtype)
