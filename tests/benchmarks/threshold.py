"""Where to put a detector's first threshold: what bounds would flag of labelled answers.

    python -m tests.benchmarks.threshold LABELLED.jsonl [--base-rate 0.187] [--detector gap,jsd,fused] \
        [--dtype bfloat16] [--model NAME]

The file is one of labelled sentences, as `gasp eval` reads it. The bounds are those that flag a round share of them,
the one that finds 80 % of what is unsupported, and the seeded one. A set that was drawn to have many answers with
something unsupported promises a precision that no application sees; with a base rate, the share of such answers, they
are weighted against the others. What was learned from the set is measured out of fold by source, as
tests.benchmarks.detectors does; the readout is learned again from the sets beside the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.readout.detector import READOUT, shipped_readout
from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.evaluation.bootstrap import Places
from gasp_core.evaluation.run import EvaluationConfig, Models, load_models, measure
from gasp_core.packaged import PACKAGED_MODEL
from gasp_core.training.command import states_reader
from tests.benchmarks.detectors import show_progress
from tests.benchmarks.held_out import HeldOut, hold_out

SEEDED = tuple(name for name, one in DETECTORS.items() if one.bounds is not None)
RECALL = 0.8
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)


def main(
    path: Annotated[Path, typer.Argument(help="Labelled answers, as JSON lines.")],
    detector: Annotated[str, typer.Option(help="Detectors by name, with commas between.")] = ",".join(SEEDED),
    base_rate: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="The share of answers with something unsupported; default: as is."),
    ] = None,
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option()] = "auto",
    dtype: Annotated[str, typer.Option()] = "auto",
) -> None:
    """Score, then print what each bound would flag."""
    detectors = detectors_named(detector.split(","))
    models = load_models(model, device=device, dtype=dtype)
    held_out = HeldOut({})
    if READOUT in detectors:
        READOUT.require_admission(models.exact.scorer.identity)
        models = Models(states_reader(models.exact, shipped_readout().layer), None)
        held_out = hold_out(sorted(path.parent.glob("*.jsonl")), models.exact, show_progress)
    measured_ones = [held_out.of(one, path.stem) for one in detectors]
    found = measure(path, measured_ones, models, EvaluationConfig(n_resamples=1), show_progress).measured
    for one in detectors:
        rows = found.rows[one.name]
        weights = weights_at(base_rate, rows.unsupported, found.answer_of)
        known = np.isfinite(rows.scores)
        unsupported, weights = rows.unsupported[known], weights[known]
        rate = np.average(unsupported, weights=weights)
        print(f"\n{one.name}: {len(unsupported):,} sentences, {rate:.1%} unsupported")
        seed = None if one.bounds is None else one.bounds.flag_below
        print("\n".join(described(rows.scores[known], unsupported, weights, seed)))


def weights_at(base_rate: float | None, unsupported: Flags, answer_of: Places) -> Floats:
    """Weights (n,) of sentences with which that share of the answers has something unsupported; None: all are 1."""
    affected = np.zeros(int(answer_of.max()) + 1, dtype=np.bool_)
    affected[answer_of[unsupported]] = True
    present = affected[np.unique(answer_of)].mean()
    if base_rate is None or present in {0, 1}:
        return np.ones(len(answer_of))
    weights: Floats = np.where(affected[answer_of], base_rate / present, (1 - base_rate) / (1 - present))
    return weights


def described(scores: Floats, unsupported: Flags, weights: Floats, seed: float | None) -> Iterator[str]:
    """The head of a table, and a line for each share, for the recall and for the seed."""
    yield f"{'flag below':>10} {'flagged':>8} {'recall':>8} {'precision':>10} {'F1':>6}"
    order = np.argsort(scores)
    below = np.cumsum(weights[order]) / weights.sum()
    bounds = [float(scores[order][np.searchsorted(below, share)]) for share in SHARES]
    found = np.cumsum((weights * unsupported)[order]) / (weights * unsupported).sum()
    bounds.append(float(np.nextafter(scores[order][np.searchsorted(found, RECALL)], np.inf)))
    for bound in bounds if seed is None else [*bounds, seed]:
        flagged = scores < bound
        hits, flags = weights[flagged & unsupported].sum(), weights[flagged].sum()
        bad = weights[unsupported].sum()
        recall, precision, f1 = hits / bad, hits / max(flags, 1e-9), 2 * hits / (flags + bad)
        yield f"{bound:>10.3f} {flags / weights.sum():>8.1%} {recall:>8.1%} {precision:>10.1%} {f1:>6.3f}"


if __name__ == "__main__":
    typer.run(main)
