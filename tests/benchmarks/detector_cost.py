"""What detectors cost beside the two passes that they need: `make bench-detector-cost`.

The sample exchanges are scored in two passes on one thread, without and with what the readout reads on the way, then
judged by `readout`, `fused` and `gap`, round after round and in turns, in seconds of the processor: what disturbs the
machine disturbs all of them. Then each of the two ways of reading has a process of its own, whose memory is its peak.
Prints the shares and writes build/bench/detector_cost.json.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypeVar

import torch
import typer
from rich.progress import track

from gasp_core.detectors.detector import AnswerEvidence, Detector
from gasp_core.detectors.fused import FUSED
from gasp_core.detectors.readout.detector import READOUT
from gasp_core.detectors.two_pass import GAP
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.scorer import GroundingScorer
from schemas.interaction import Interaction
from tests.benchmarks.memory import reset_peak_mb, status_mb
from tests.benchmarks.processor import processor
from worker.ingest.judging import exchange_of

SAMPLES = Path("worker/samples.jsonl")
OUTPUT = Path("build/bench/detector_cost.json")

T = TypeVar("T")


def main(rounds: Annotated[int, typer.Option(min=1, help="Rounds over all samples.")] = 7) -> None:
    """Measure, print and write."""
    plain, reading = scorers()
    exchanges = samples()
    found = [
        round_of(plain, reading, exchanges, reading_first=at % 2 == 1)
        for at in track(range(rounds), description="rounds")
    ]
    report: dict[str, Any] = {
        "processor": processor(),
        "exchanges": len(exchanges),
        "rounds": rounds,
        "two_passes_ms_an_answer": 1_000 * median(one["passes"] for one in found) / len(exchanges),
        "states_share_of_two_passes": median(one["reading"] / one["passes"] - 1 for one in found),
    }
    for detector in (READOUT, FUSED):
        own = [one[detector.name] - one[GAP.name] for one in found]
        report[f"{detector.name}_ms_an_answer"] = 1_000 * median(own) / len(exchanges)
        report[f"{detector.name}_share_of_two_passes"] = median(
            less / one["passes"] for less, one in zip(own, found, strict=True)
        )
    for at, name in enumerate(("plain", "reading")):
        report[f"peak_mb_{name}"] = in_own_process(at)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, value in report.items():
        print(f"{name:<30} {value:.4g}" if isinstance(value, int | float) else f"{name:<30} {value}")


def scorers() -> tuple[GroundingScorer, GroundingScorer]:
    """One that reads nothing but likelihoods, and one that reads what the readout wants to know, of one model."""
    torch.set_num_threads(1)
    model = load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype="float32")
    # Without contexts kept from the round before, which would make the passes look cheaper than they are.
    plain = GroundingScorer(model, passes=choose_passes(model, cache_bytes=0).passes)
    return plain, plain.reading(READOUT.taps())


def samples() -> list[Exchange]:
    """The exchanges that come with the worker."""
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    return [exchange_of(Interaction.model_validate_json(line)) for line in lines]


def round_of(
    plain: GroundingScorer, reading: GroundingScorer, exchanges: list[Exchange], *, reading_first: bool
) -> dict[str, float]:
    """Seconds of the two passes, without and with what is read on the way, and of detectors over all exchanges."""
    order = [("passes", plain), ("reading", reading)]
    seconds: dict[str, float] = {}
    groundings: list[AnswerGrounding] = []
    for name, scorer in reversed(order) if reading_first else order:
        seconds[name], found = timed(lambda scorer=scorer: scorer.score(exchanges))  # type: ignore[misc]  # bound here
        if name == "reading":
            groundings = found
    return seconds | {one.name: judged(one, exchanges, groundings) for one in (READOUT, FUSED, GAP)}


def judged(detector: Detector, exchanges: list[Exchange], groundings: list[AnswerGrounding]) -> float:
    """Seconds in which the detector scores all exchanges."""
    pairs = list(zip(exchanges, groundings, strict=True))
    return timed(lambda: [detector.scores(AnswerEvidence.of(exchange, grounding)) for exchange, grounding in pairs])[0]


def in_own_process(place: int) -> float:
    """The peak memory, in MB, of a process that scores the samples once by the scorer at that place."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak, (place,))


def _peak(place: int) -> float:
    scorer = scorers()[place]
    exchanges = samples()
    reset_peak_mb()
    scorer.score(exchanges)
    return status_mb("VmHWM")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The seconds of the processor that it takes, and what it gives."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


if __name__ == "__main__":
    typer.run(main)
