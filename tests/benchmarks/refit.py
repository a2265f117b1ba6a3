"""What reviewers teach: does a correction learned from N labels rank better than what ships? `make bench-refit`.

    python -m tests.benchmarks.refit [--folder FOLDER] [--name SET]… [--limit N] [--size LABELS]…
        [--draws 100] [--json PATH]

FOLDER holds labelled answers as gasp_core.evaluation.data reads them, a .jsonl file per set. Of each set a part of the
sources is kept to measure on, anew in each draw, and of the others so many sentences are labelled: at random, or as
worker.rules.selection asks reviewers about them. From these worker.rules.refit decides whether there is a correction.
Compared are the areas under the ROC curve on what was kept. What the model said of an answer is kept under
$GASP_CACHE_DIR/features. Prints tables in Markdown and writes every draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track

from gasp_core.evaluation.run import load_models
from gasp_core.packaged import PACKAGED_MODEL
from tests.benchmarks.refit_grades import Grade, grades, markdown
from tests.benchmarks.refit_reading import read
from tests.benchmarks.refit_traffic import Asked, Sentences, made_up

FOLDER = Path(__file__).parents[3] / "shared" / "data"
REPORT = Path("build/bench/refit.json")
# From the first three nothing was learned; the others were learned from by the readout, and not by fused.
SETS = ("cliff_val", "lfqa_dev", "summedits_dev", "mtrag_human", "ragtruth_qa_train")
SIZES = (30, 50, 100, 200, 300, 500, 1000)


def main(
    folder: Annotated[Path, typer.Option(help="Where the labelled answers are.")] = FOLDER,
    name: Annotated[list[str] | None, typer.Option(help="Sets by name, several times; default: five.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Answers of each set, drawn at random.")] = 500,
    size: Annotated[list[int] | None, typer.Option(min=1, help="Numbers of labels, several times.")] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws, each with all sizes.")] = 100,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    dtype: Annotated[str, typer.Option(help="Of the model.")] = "float32",
    threads: Annotated[int, typer.Option(min=1, help="Threads of the model.")] = 1,
    report: Annotated[Path, typer.Option("--json", help="Where every draw goes.")] = REPORT,
    synthetic: Annotated[bool, typer.Option(help="Made-up scores, to try the script.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Read, simulate, print and write."""
    torch.set_num_threads(threads)
    sets = made_up("synthetic") if synthetic else list(_sets(folder, name or SETS, limit, dtype))
    found = list(_grades(sets, sorted(size or SIZES), draws, seed))
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps([asdict(one) for one in found], allow_nan=False) + "\n", encoding="utf-8")
    print("\n".join(markdown(found, draws)))


def _sets(folder: Path, names: Iterable[str], limit: int, dtype: str) -> Iterator[Sentences]:
    reader = load_models(PACKAGED_MODEL, device="cpu", dtype=dtype).exact
    for name in names:
        yield from read(folder / f"{name}.jsonl", reader, limit)


def _grades(sets: list[Sentences], sizes: Sequence[int], draws: int, seed: int) -> Iterator[Grade]:
    """Every set, way of asking and draw, at all sizes."""
    every = list(product(sets, Asked, range(draws)))
    for sentences, how, draw in track(every, "draws", console=Console(stderr=True)):
        yield from grades(sentences, how, sizes, draw, np.random.default_rng([seed, draw]))


if __name__ == "__main__":
    typer.run(main)
