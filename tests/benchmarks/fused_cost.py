"""What the fused detector costs beside the two passes that it needs: `make bench-fused`.

The sample exchanges are scored in two passes on one thread, then judged by `fused` and by `gap`, round after round, so
that what disturbs the machine disturbs all three. Prints the shares and writes build/bench/fused.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, TypeVar

import torch
import typer
from rich.progress import track

from gasp_core.detectors.detector import AnswerEvidence, Detector
from gasp_core.detectors.fused import FUSED
from gasp_core.detectors.two_pass import GAP
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.scorer import GroundingScorer
from schemas.interaction import Interaction
from worker.ingest.judging import exchange_of

SAMPLES = Path("worker/samples.jsonl")
OUTPUT = Path("build/bench/fused.json")

T = TypeVar("T")


def main(rounds: Annotated[int, typer.Option(min=1, help="Rounds over all samples.")] = 5) -> None:
    """Measure, print and write."""
    torch.set_num_threads(1)
    model = load_model(resolve_model(PACKAGED_MODEL), device="cpu")
    # Without contexts kept from the round before, which would make the passes look cheaper than they are.
    scorer = GroundingScorer(model, passes=choose_passes(model, cache_bytes=0).passes)
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    exchanges = [exchange_of(Interaction.model_validate_json(line)) for line in lines]
    shares = [round_of(scorer, exchanges) for _ in track(range(rounds), description="rounds")]
    report = {
        "exchanges": len(exchanges),
        "rounds": rounds,
        "fused_ms_an_answer": 1_000 * median(fused for _, fused, _ in shares) / len(exchanges),
        "two_passes_ms_an_answer": 1_000 * median(passes for passes, _, _ in shares) / len(exchanges),
        "fused_share_of_two_passes": median((fused - gap) / passes for passes, fused, gap in shares),
    }
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, value in report.items():
        print(f"{name:<28} {value:.4g}")


def round_of(scorer: GroundingScorer, exchanges: list[Exchange]) -> tuple[float, float, float]:
    """Seconds of the two passes, of `fused` and of `gap` over all exchanges."""
    passes_s, groundings = timed(lambda: scorer.score(exchanges))
    fused_s, gap_s = (judged(detector, exchanges, groundings) for detector in (FUSED, GAP))
    return passes_s, fused_s, gap_s


def judged(detector: Detector, exchanges: list[Exchange], groundings: list[AnswerGrounding]) -> float:
    """Seconds in which the detector scores all exchanges."""
    pairs = list(zip(exchanges, groundings, strict=True))
    return timed(lambda: [detector.scores(AnswerEvidence.of(exchange, grounding)) for exchange, grounding in pairs])[0]


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The seconds that it takes, and what it gives."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


if __name__ == "__main__":
    typer.run(main)
