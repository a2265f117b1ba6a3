"""Seconds and peak memory over the loaded model of one exact leave-one-out, in a process of its own.

Arguments: dtype, number of passages, context tokens, threads. Prints {"seconds", "peak_mb"}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import torch

from gasp_core.grounding import Method
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.scorer import GroundingScorer
from tests.benchmarks.composed import composed_exchanges
from tests.benchmarks.memory import reset_peak_mb, status_mb

ANSWER_TOKENS = 120


def measure(dtype: str, passages: int, context_tokens: int, threads: int) -> dict[str, float]:
    """Run this module in a new process."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.benchmarks.one_exchange",
            dtype,
            str(passages),
            str(context_tokens),
            str(threads),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> None:
    dtype = sys.argv[1]
    passages, context_tokens, threads = map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    model = load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype=dtype)
    scorer = GroundingScorer(model)
    small, wanted = (
        composed_exchanges(model, count=1, passages=passages, passage_tokens=tokens, answer_tokens=ANSWER_TOKENS)
        for tokens in (20, context_tokens // passages)
    )
    # Brings every weight into memory.
    scorer.score(small, Method.LEAVE_ONE_OUT)
    before_mb = reset_peak_mb()
    started = time.perf_counter()
    (result,) = scorer.score(wanted, Method.LEAVE_ONE_OUT)
    seconds = time.perf_counter() - started
    if result.n_windows != 1 or len({chunk.group for chunk in result.chunks}) != passages:
        raise SystemExit("the exchange is not of the wanted shape")
    print(json.dumps({"seconds": seconds, "peak_mb": status_mb("VmHWM") - before_mb}))


if __name__ == "__main__":
    main()
