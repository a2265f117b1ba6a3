"""Where to put a detector's first threshold: what bounds would flag of labelled answers.

    python -m tests.benchmarks.threshold LABELLED.jsonl [--detector gap,jsd,fused] [--dtype bfloat16] [--model NAME]

The file is one of labelled sentences, as `gasp eval` reads it. The bounds are those that flag a round share of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.evaluation.ranking import Rows
from gasp_core.evaluation.run import EvaluationConfig, load_models, measure
from gasp_core.packaged import PACKAGED_MODEL
from tests.benchmarks.detectors import show_progress

SEEDED = tuple(name for name, one in DETECTORS.items() if one.bounds is not None)
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)


def main(
    path: Annotated[Path, typer.Argument(help="Labelled answers, as JSON lines.")],
    detector: Annotated[str, typer.Option(help="Detectors by name, with commas between.")] = ",".join(SEEDED),
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option()] = "auto",
    dtype: Annotated[str, typer.Option()] = "auto",
) -> None:
    """Score, then print what each bound would flag."""
    detectors = detectors_named(detector.split(","))
    models = load_models(model, device=device, dtype=dtype)
    found = measure(path, detectors, models, EvaluationConfig(n_resamples=1), show_progress).measured
    for one in detectors:
        rows = found.rows[one.name].scored()
        print(f"\n{one.name}: {len(rows.scores):,} sentences, {rows.unsupported.mean():.1%} unsupported")
        print("\n".join(described(rows)))


def described(rows: Rows) -> Iterator[str]:
    """The head of a table, and a line for each share."""
    yield f"{'flag below':>10} {'flagged':>8} {'recall':>8} {'precision':>10} {'F1':>6}"
    for share in SHARES:
        bound = float(np.quantile(rows.scores, share))
        flagged = rows.scores < bound
        hits = int((flagged & rows.unsupported).sum())
        recall, precision = hits / rows.unsupported.sum(), hits / max(flagged.sum(), 1)
        f1 = 2 * hits / (flagged.sum() + rows.unsupported.sum())
        yield f"{bound:>10.3f} {flagged.mean():>8.1%} {recall:>8.1%} {precision:>10.1%} {f1:>6.3f}"


if __name__ == "__main__":
    typer.run(main)
