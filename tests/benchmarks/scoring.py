"""Speed, exactness and memory of scoring beside gasp-rag 0.2.1, both in one run: `make bench-scoring`.

The packages take turns on every exchange, with the same number of threads; a ratio is that of the medians. Writes
build/bench/scoring.json.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.progress import track

from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.model import LanguageModel, load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.passes.plain import PlainPasses
from gasp_core.scorer import GroundingScorer
from tests.benchmarks.composed import composed_exchanges
from tests.benchmarks.one_exchange import measure
from tests.benchmarks.peer_process import Peer, peer_process

OUTPUT = Path("build/bench/scoring.json")
PASSAGES = 5
PASSAGE_TOKENS = 200
ANSWER_TOKENS = 120
ANSWERS_PER_CONTEXT = 10
MEMORY_CONTEXT_TOKENS = 1_800


@dataclass(frozen=True, slots=True)
class Way:
    """One of ours, beside the peer's leave-one-out or two passes."""

    scorer: GroundingScorer
    method: Method


class Bench:
    """Times by name, and the results that the ways gave."""

    def __init__(self, ways: dict[str, Way], peer: Peer) -> None:
        self.ways = ways
        self.peer = peer
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.results: dict[str, list[AnswerGrounding]] = defaultdict(list)

    def run(self, exchange: Exchange) -> None:
        """Every way and the peer's two on one exchange."""
        for name, method in (("peer_loo", True), ("peer_two_pass", False)):
            self.seconds[name].append(self.peer.time(exchange, leave_one_out=method)["seconds"])
        for name, way in self.ways.items():
            started = time.perf_counter()
            (result,) = way.scorer.score([exchange], way.method)
            self.seconds[name].append(time.perf_counter() - started)
            self.results[name].append(result)

    def median(self, name: str) -> float:
        """Median seconds."""
        return statistics.median(self.seconds[name])


def main(
    exchanges: Annotated[int, typer.Option(min=1)] = 24,
    threads: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Measure and report."""
    torch.set_num_threads(threads)
    folder = resolve_model(PACKAGED_MODEL)
    exact = load_model(folder, device="cpu", dtype="float32")
    fast = load_model(folder, device="cpu", dtype="bfloat16")
    cases = composed_exchanges(
        exact, count=exchanges, passages=PASSAGES, passage_tokens=PASSAGE_TOKENS, answer_tokens=ANSWER_TOKENS
    )
    with peer_process(folder, threads) as peer:
        bench = Bench(ways_of(exact, fast), peer)
        for case in track(cases, "scoring"):
            bench.run(case)
    report: dict[str, Any] = {"exchanges": exchanges, "threads": threads, "torch": torch.__version__}
    report |= {"median_seconds": {name: round(bench.median(name), 3) for name in bench.seconds}}
    report |= speeds(bench)
    report |= agreements(bench)
    report |= exactness(exact, cases[: max(1, exchanges // 8)])
    report |= {"shared_context": shared_context(fast, cases)}
    for key, dtype in (("fp32", "float32"), ("bf16", "bfloat16")):
        report[f"peak_mb_{key}"] = round(measure(dtype, PASSAGES, MEMORY_CONTEXT_TOKENS, threads)["peak_mb"])
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


def ways_of(exact: LanguageModel, fast: LanguageModel) -> dict[str, Way]:
    """What is measured, without the cache, which would answer the second way by the first."""
    ways: dict[str, Way] = {}
    for key, model in (("fp32", exact), ("bf16", fast)):
        passes = choose_passes(model, cache_bytes=0).passes
        plain = GroundingScorer(model, passes=passes)
        ways[f"loo_{key}"] = Way(plain, Method.LEAVE_ONE_OUT)
        ways[f"two_pass_{key}"] = Way(plain, Method.TWO_PASS)
        ways[f"masked_{key}"] = Way(GroundingScorer(model, passes=passes, masked=True), Method.LEAVE_ONE_OUT)
    return ways


def speeds(bench: Bench) -> dict[str, float]:
    """How many times as fast as gasp-rag in float32."""
    ratios = {
        name: bench.median("peer_two_pass" if way.method is Method.TWO_PASS else "peer_loo") / bench.median(name)
        for name, way in bench.ways.items()
    }
    return {name: round(ratio, 2) for name, ratio in (ratios | {"cascade_bf16": cascade(bench)}).items()}


def cascade(bench: Bench) -> float:
    """The product's own job: two passes on all, leave-one-out on the lowest fifth; against leave-one-out on all."""
    two, full, peers = (bench.seconds[name] for name in ("two_pass_bf16", "loo_bf16", "peer_loo"))
    lowest = sorted(range(len(two)), key=lambda at: bench.results["two_pass_bf16"][at].lowest_gap or 0.0)
    looked_at = lowest[: -(-len(two) // 5)]
    return sum(peers) / (sum(two) + sum(full[at] for at in looked_at))


def agreements(bench: Bench) -> dict[str, Any]:
    """How near the quicker ways are to exact float32 leave-one-out, over all scored sentences."""
    return {
        f"agreement_{name}": agreement(bench.results["loo_fp32"], bench.results[name])
        for name in ("loo_bf16", "masked_fp32", "masked_bf16")
    }


def agreement(reference: Sequence[AnswerGrounding], others: Sequence[AnswerGrounding]) -> dict[str, float]:
    """Of drops, of each sentence's largest drop, and of the chunk that has it.

    ``same_supporting_chunk`` is over the sentences that the reference gives a supporting chunk, and a sentence that
    has lost it counts against; ``same_largest_drop`` is over all, also those that react to no chunk, where the
    largest of several numbers near 0 is chance.
    """
    pairs = [
        (left, right)
        for one, other in zip(reference, others, strict=True)
        for left, right in zip(one.sentences, other.sentences, strict=True)
        if left.drops
    ]
    differences = [abs(a.drop - b.drop) for left, right in pairs for a, b in zip(left.drops, right.drops, strict=True)]
    largest = [[max(one.drops, key=lambda drop: drop.drop) for one in pair] for pair in pairs]
    supported = [pair for pair in pairs if pair[0].supporting_chunk is not None]
    return {
        "sentences": len(pairs),
        "drop_mean_absolute_difference": round(statistics.mean(differences), 5),
        "drop_largest_difference": round(max(differences), 4),
        "supported_sentences": len(supported),
        "same_supporting_chunk": round(
            statistics.mean(left.supporting_chunk == right.supporting_chunk for left, right in supported), 4
        ),
        "same_largest_drop": round(statistics.mean(left.chunk == right.chunk for left, right in largest), 4),
        "max_drop_rank_correlation": round(
            statistics.correlation(*(ranks([pair[side].drop for pair in largest]) for side in (0, 1))), 4
        ),
    }


def ranks(values: Sequence[float]) -> list[int]:
    """The place of each value in order; equal ones do not occur."""
    order = sorted(range(len(values)), key=values.__getitem__)
    places = {at: place for place, at in enumerate(order)}
    return [places[at] for at in range(len(values))]


def exactness(model: LanguageModel, cases: Sequence[Exchange]) -> dict[str, float]:
    """Largest differences in float32: from plainly re-scored prompts, and between batches of 1, 2 and 8."""
    ours = GroundingScorer(model, passes=choose_passes(model, cache_bytes=0).passes)
    plain = GroundingScorer(model, passes=PlainPasses(model, 2_048))
    alone = [ours.score([case], Method.LEAVE_ONE_OUT)[0] for case in cases]
    whole = plain.score(cases, Method.LEAVE_ONE_OUT)
    mixed = list(reversed(cases))
    batches = [
        result
        for size in (2, 8)
        for start in range(0, len(mixed), size)
        for result in ours.score(mixed[start : start + size], Method.LEAVE_ONE_OUT)
    ]
    return {
        "fp32_largest_difference_from_plain": largest_difference(alone, whole),
        "fp32_largest_difference_between_batches": largest_difference([*reversed(alone)] * 2, batches),
    }


def largest_difference(left: Sequence[AnswerGrounding], right: Sequence[AnswerGrounding]) -> float:
    """Over every feature of every sentence."""
    return max(
        abs(a - b)
        for one, other in zip(left, right, strict=True)
        for a, b in zip(numbers(one), numbers(other), strict=True)
    )


def numbers(grounding: AnswerGrounding) -> list[float]:
    """Every feature of every scored sentence."""
    return [
        value
        for sentence in grounding.sentences
        if sentence.gap is not None
        for value in (
            sentence.gap,
            sentence.jsd_no_context or 0.0,
            sentence.surprisal or 0.0,
            *(value for drop in sentence.drops for value in (drop.drop, drop.jsd)),
        )
    ]


def shared_context(model: LanguageModel, cases: Sequence[Exchange]) -> float:
    """Ten answers on one context, two passes: how many times as fast as without the cache."""
    first = cases[0]
    answers = [replace(first, answer=case.answer) for case in (list(cases) * ANSWERS_PER_CONTEXT)[:ANSWERS_PER_CONTEXT]]
    ratios = []
    for _ in range(3):
        seconds = []
        for cache_bytes in (0, None):
            scorer = GroundingScorer(model, passes=choose_passes(model, cache_bytes=cache_bytes).passes)
            started = time.perf_counter()
            for answer in answers:
                scorer.score([answer])
            seconds.append(time.perf_counter() - started)
        ratios.append(seconds[0] / seconds[1])
    return round(statistics.median(ratios), 2)


if __name__ == "__main__":
    typer.run(main)
