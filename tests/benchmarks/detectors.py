"""Every detector but diagnostics on every development set, with the controls: `make bench-detectors`.

    python -m tests.benchmarks.detectors [--folder FOLDER] [--detector NAME,…] [--peer NAME]… [--limit N] [--model NAME]

FOLDER holds labelled answers as gasp_core.evaluation.data reads them, a .jsonl file per set. Prints a table per set
and, at last, one of all sets in Markdown; writes build/bench/detectors.json, set -> detector -> figures, as `gasp eval
--json` prints it, after each set. What was learned from a set is measured on it out of fold by source: `fused`, and
`readout`, which is learned again from all sets of the folder that the shipped one is from; `readout-elsewhere` has
nothing of the measured set. What the model said of an answer is kept under $GASP_CACHE_DIR/features, so a run that was
broken off goes on.
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
from gasp_core.detectors.readout.detector import READOUT, shipped_readout
from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.evaluation.lines import NOTHING, report_lines
from gasp_core.evaluation.peers import peer_detectors
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.run import EvaluationConfig, Models, load_models, measure, needs_model
from gasp_core.packaged import PACKAGED_MODEL
from gasp_core.training.command import states_reader
from tests.benchmarks.held_out import ELSEWHERE, HeldOut, hold_out

FOLDER = Path(__file__).parents[3] / "shared" / "data"
OUTPUT = Path("build/bench/detectors.json")
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
    paths = sorted(folder.glob("*.jsonl"))
    held_out = HeldOut({})
    if models is not None and READOUT in detectors:
        READOUT.require_admission(models.exact.scorer.identity)
        models = Models(states_reader(models.exact, shipped_readout().layer), None)
        held_out = hold_out(paths, models.exact, show_progress)
        detectors.append(replace(READOUT, name=ELSEWHERE))
    sets: dict[str, Entries] = {}
    output.parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        theirs = [held_out.of(one, path.stem) for one in detectors]
        sets[path.stem] = measured(path, theirs, models, config, of_sources)
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


def markdown(sets: Mapping[str, Entries]) -> Iterator[str]:
    """A row per detector, a column per set: area with interval, and differences to ``lexical`` and ``fused``."""
    names = list(dict.fromkeys(name for entries in sets.values() for name in entries))
    heads = [f"{name}, by {_level(entries)}" for name, entries in sets.items()]
    yield "| AUC [95 %] | " + " | ".join(heads) + " |"
    yield "|---" * (len(sets) + 1) + "|"
    for name in names:
        yield f"| `{name}` | " + " | ".join(_area(entries.get(name)) for entries in sets.values()) + " |"
    for other in ("lexical", "fused"):
        for name in names:
            cells = [_less(entries.get(name), f"vs_{other}") for entries in sets.values()]
            if any(cell != NOTHING for cell in cells) and name != other:
                yield f"| `{name}` less `{other}` | " + " | ".join(cells) + " |"


def _level(entries: Entries) -> object:
    return next(iter(entries.values()))["level"]


def _area(entry: Entry | None) -> str:
    if entry is None or not isinstance(entry["auc"], float):
        return NOTHING
    return f"{entry['auc']:.3f} [{entry['lo']:.3f}, {entry['hi']:.3f}]"


def _less(entry: Entry | None, key: str) -> str:
    found = entry.get(key) if entry else None
    if not isinstance(found, list) or not all(isinstance(one, float) for one in found):
        return NOTHING
    less, low, high = found
    return f"{less:+.3f} [{low:+.3f}, {high:+.3f}]"


def show_progress(items: Iterable[T], total: int) -> Iterable[T]:
    """Show how far it is."""
    return track(items, total=total, description="reading answers", console=Console(stderr=True))


if __name__ == "__main__":
    typer.run(main)
