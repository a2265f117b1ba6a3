"""Every detector on every development set, with the controls: `make bench-detectors`.

    python -m tests.benchmarks.detectors [--folder FOLDER] [--detector NAME,…] [--limit N] [--model NAME]

FOLDER holds labelled answers as gasp_core.evaluation.data reads them, a .jsonl file per set. Prints a table per set
and writes build/bench/detectors.json, set -> detector -> figures, as `gasp eval --json` prints it, after each set.
What the model said of an answer is kept under $GASP_CACHE_DIR/features, so a run that was broken off goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import typer
from rich.console import Console
from rich.progress import track

from gasp_core.evaluation.lines import report_lines
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.registry import DETECTORS, detectors_named
from gasp_core.evaluation.run import Design, load_models, measure, needs_model
from gasp_core.packaged import PACKAGED_MODEL

FOLDER = Path(__file__).parents[3] / "shared" / "data"
OUTPUT = Path("build/bench/detectors.json")

T = TypeVar("T")


def main(
    folder: Annotated[Path, typer.Option(help="Where the labelled answers are.")] = FOLDER,
    detector: Annotated[str, typer.Option(help="Detectors by name, with commas between.")] = ",".join(DETECTORS),
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option()] = "auto",
    dtype: Annotated[str, typer.Option()] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Answers of each set, drawn at random.")] = None,
    resamples: Annotated[int, typer.Option(min=1)] = 1_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the model.")] = None,
    output: Annotated[Path, typer.Option(help="Where the figures go.")] = OUTPUT,
) -> None:
    """Measure, print and write."""
    if threads is not None:
        torch.set_num_threads(threads)
    detectors = detectors_named(detector.split(","))
    models = load_models(model, device=device, dtype=dtype) if needs_model(detectors) else None
    design = Design(limit=limit, seed=seed, n_resamples=resamples)
    sets: dict[str, dict[str, Entry]] = {}
    output.parent.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.jsonl")):
        sets[path.stem] = measure(path, detectors, models, design, watch).entries
        print("\n".join(report_lines(path.stem, sets[path.stem])) + "\n", flush=True)
        output.write_text(json.dumps(sets, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def watch(items: Iterable[T], total: int) -> Iterable[T]:
    """Show how far it is."""
    return track(items, total=total, description="reading answers", console=Console(stderr=True))


if __name__ == "__main__":
    typer.run(main)
