"""Every detector but diagnostics on every development set, with the controls: `make bench-detectors`.

    python -m tests.benchmarks.detectors [--folder FOLDER] [--detector NAME,…] [--peer NAME]… [--limit N] [--model NAME]

FOLDER holds labelled answers as gasp_core.evaluation.data reads them, a .jsonl file per set. Prints a table per set
and, at last, one of all sets in Markdown; writes build/bench/detectors.json, set -> detector -> figures, as `gasp eval
--json` prints it, after each set. On the set that `fused` was fitted to it is measured out of fold by source. What the
model said of an answer is kept under $GASP_CACHE_DIR/features, so a run that was broken off goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import typer
from rich.console import Console
from rich.progress import track

from gasp_core.detectors.detector import Detector, Need
from gasp_core.detectors.fused_model import shipped_fused
from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.evaluation.lines import report_lines
from gasp_core.evaluation.peers import peer_detectors
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.run import EvaluationConfig, Models, load_models, measure, needs_model
from gasp_core.packaged import PACKAGED_MODEL

FOLDER = Path(__file__).parents[3] / "shared" / "data"
OUTPUT = Path("build/bench/detectors.json")
FUSED, OUT_OF_FOLD = "fused", "fused-cv"
# All but diagnostics, which are measured where they are named.
USUAL = tuple(name for name, one in DETECTORS.items() if one.needs is not Need.TRAJECTORIES)

T = TypeVar("T")
Entries = dict[str, Entry]


def main(
    folder: Annotated[Path, typer.Option(help="Where the labelled answers are.")] = FOLDER,
    detector: Annotated[str, typer.Option(help="Detectors by name, with commas between.")] = ",".join(USUAL),
    peer: Annotated[
        list[str] | None, typer.Option(help="Another model to compare with, by hub name or folder; several times.")
    ] = None,
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option()] = "auto",
    dtype: Annotated[str, typer.Option()] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Answers of each set, drawn at random.")] = None,
    sources_limit: Annotated[
        int | None, typer.Option(min=1, help="Answers of each set that tpa reads; default: all.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1)] = 1_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the model.")] = None,
    output: Annotated[Path, typer.Option(help="Where the figures go.")] = OUTPUT,
) -> None:
    """Measure, print and write."""
    if threads is not None:
        torch.set_num_threads(threads)
    detectors = detectors_named(detector.split(",")) + peer_detectors(peer or (), device=device)
    models = load_models(model, device=device, dtype=dtype) if needs_model(detectors) else None
    config = EvaluationConfig(limit, seed, resamples)
    of_sources = replace(config, limit=sources_limit or limit)
    sets: dict[str, Entries] = {}
    output.parent.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.jsonl")):
        sets[path.stem] = honest(path.stem, measured(path, detectors, models, config, of_sources))
        print("\n".join(report_lines(path.stem, sets[path.stem])) + "\n", flush=True)
        output.write_text(json.dumps(sets, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    print("\n".join(markdown(sets)))


def measured(
    path: Path,
    detectors: Sequence[Detector],
    models: Models | None,
    config: EvaluationConfig,
    of_sources: EvaluationConfig,
) -> Entries:
    """The entries of all detectors, those that need sources by a config of their own."""
    parts = [
        ([one for one in detectors if one.needs is not Need.SOURCES], config),
        ([one for one in detectors if one.needs is Need.SOURCES], of_sources),
    ]
    entries = [measure(path, part, models, theirs, show_progress).entries for part, theirs in parts if part]
    return {one.name: found[one.name] for one in detectors for found in entries if one.name in found}


def honest(dataset: str, entries: Entries) -> Entries:
    """With what the coefficients do out of fold, where they were fitted to that very set."""
    if dataset != shipped_fused().provenance["data"] or not {FUSED, OUT_OF_FOLD} <= entries.keys():
        return entries
    return entries | {FUSED: entries[OUT_OF_FOLD] | {"out_of_fold": True}}


def markdown(sets: Mapping[str, Entries]) -> Iterator[str]:
    """A row per detector, a column per set: area with interval, and difference to the control without a model."""
    names = list(dict.fromkeys(name for entries in sets.values() for name in entries))
    yield "| AUC [95 %]; less `lexical` | " + " | ".join(f"{name}, by {_level(sets[name])}" for name in sets) + " |"
    yield "|---" * (len(sets) + 1) + "|"
    for name in names:
        yield f"| `{name}` | " + " | ".join(_cell(entries.get(name)) for entries in sets.values()) + " |"


def _level(entries: Entries) -> object:
    return next(iter(entries.values()))["level"]


def _cell(entry: Entry | None) -> str:
    if entry is None or not isinstance(entry["auc"], float):
        return "–"
    area = f"{entry['auc']:.3f} [{entry['lo']:.3f}, {entry['hi']:.3f}]"
    less = entry["vs_lexical"]
    return f"{area}; {less[0]:+.3f}" if isinstance(less, list) and isinstance(less[0], float) else area


def show_progress(items: Iterable[T], total: int) -> Iterable[T]:
    """Show how far it is."""
    return track(items, total=total, description="reading answers", console=Console(stderr=True))


if __name__ == "__main__":
    typer.run(main)
