"""The paper's features of sentences, scored by our standardised sum, beside the figures that the paper states.

    python -m tests.benchmarks.peer_features [--folder FOLDER] [--resamples N] [--seed N]

FOLDER/peer_features_*.csv has a row per sentence: its features as the paper's author computed them, its response and
its label. Each of gap, divergence without context, largest drop and largest divergence of a chunk is standardised
over all rows; their sum, negated, is the suspicion. The paper resamples responses a thousand times, which leaves the
ends of an interval to chance by about 0.002, and states the mean over the resamples. More of them are drawn here.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gasp_core.detectors.learning import standardised_sum
from gasp_core.evaluation.bootstrap import interval, resample, weighted_roc_auc
from gasp_core.evaluation.ranking import Rows
from gasp_core.gasp_rag.metrics import roc_auc

FOLDER = Path(__file__).parents[3] / "shared" / "data"
PUBLISHED = {
    "peer_features_Qwen2.5-1.5B-Instruct_K5": (0.673, 0.645, 0.700),
    "peer_features_SmolLM2-1.7B-Instruct_K5": (0.681, 0.655, 0.708),
}


def main(
    folder: Annotated[Path, typer.Option(help="Where the feature files are.")] = FOLDER,
    resamples: Annotated[int, typer.Option(min=1, help="Resamples of responses.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Print ours and theirs."""
    for name, published in PUBLISHED.items():
        rows = read_rows(folder / f"{name}.csv")
        drawn = resample(int(rows.source_of.max()) + 1, resamples, seed)
        found = interval(drawn.values(weighted_roc_auc, rows.unsupported, rows.suspicions, rows.source_of))
        assert found is not None
        area = roc_auc(rows.unsupported, rows.suspicions)
        print(f"{name}: {len(rows.scores)} sentences, {rows.unsupported.sum()} unsupported")
        print(f"  ours   {area:.3f} (mean of resamples {found.mean:.3f}) [{found.low:.3f}, {found.high:.3f}]")
        print(f"  paper  {published[0]:.3f} [{published[1]:.3f}, {published[2]:.3f}]")


def read_rows(path: Path) -> Rows:
    """The sentences of a feature file by the standardised sum, grouped by response."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    readings = np.array([reading(row) for row in rows])
    unsupported = np.array([row["label"] == "1" for row in rows])
    places = {response: at for at, response in enumerate(dict.fromkeys(row["resp_id"] for row in rows))}
    source_of = np.array([places[row["resp_id"]] for row in rows], dtype=np.intp)
    return Rows(unsupported, standardised_sum(readings, unsupported)(readings), source_of)


def reading(row: Mapping[str, str]) -> list[float]:
    """The four features of the standardised sum."""
    drops, divergences = json.loads(row["chunk_drops"]), json.loads(row["chunk_jsds"])
    return [float(row["gap"]), float(row["jsd_noctx"]), max(drops), max(divergences)]


if __name__ == "__main__":
    typer.run(main)
