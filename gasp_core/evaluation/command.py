"""What ``gasp eval`` does with a file of labelled answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gasp_core.detectors.registry import detectors_named
from gasp_core.evaluation.lines import attribution_lines, report_lines
from gasp_core.evaluation.peers import peer_detectors
from gasp_core.evaluation.plot import draw
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.run import (
    EvaluationConfig,
    Models,
    ProgressTracker,
    load_models,
    measure,
    measure_attribution,
    needs_model,
)

# What is measured if no detector is named: all that two passes and text can tell.
USUAL = ("gap", "jsd", "two-pass", "perplexity", "length", "lexical")
ATTRIBUTION = "attribution"


class Progress(Protocol):
    """Shows how far a task is, while it is open."""

    def __call__(self, description: str) -> AbstractContextManager[ProgressTracker]:
        """Open it for one task."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What was asked for. ``detectors`` and ``peers`` are names; ``plot`` is where a picture goes."""

    detectors: tuple[str, ...]
    model: str
    device: str
    dtype: str
    config: EvaluationConfig
    peers: tuple[str, ...] = ()
    plot: Path | None = None
    attribution: bool = False
    as_json: bool = False


def evaluate_answers(path: Path, request: EvaluationRequest, progress: Progress) -> Iterator[str]:
    """Measure and yield the lines to print: tables, or one JSON object dataset -> detector -> figures.

    The file's name without its ending is that of the dataset. Raises InputError, ModelError.
    """
    peers = peer_detectors(request.peers, device=request.device)
    detectors = detectors_named(request.detectors or (() if request.attribution else USUAL)) + peers
    models = _models(request) if request.attribution or needs_model(detectors) else None
    entries: dict[str, Entry] = {}
    if detectors:
        with progress("reading answers") as track:
            result = measure(path, detectors, models, request.config, track)
        entries |= result.entries
        if request.plot is not None:
            rows = {name: result.measured.rows[name] for name in result.entries}
            draw(f"{path.stem}, by {result.measured.level}", rows, request.plot)
        if not request.as_json:
            yield from report_lines(path.stem, result.entries)
    if request.attribution and models is not None:
        with progress("leaving one out") as track:
            entries[ATTRIBUTION] = measure_attribution(path, models, request.config, track)
        if not request.as_json:
            yield from attribution_lines(path.stem, entries[ATTRIBUTION])
    if request.as_json:
        yield json.dumps({path.stem: entries}, allow_nan=False)


def _models(request: EvaluationRequest) -> Models:
    return load_models(request.model, device=request.device, dtype=request.dtype)
