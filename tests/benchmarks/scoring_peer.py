"""gasp-rag 0.2.1 behind a pipe: run by the benchmarks in a process where that package can be imported.

The first line in names the model and the number of threads; each further one is a case, whose scoring is timed here.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from gasp import Case, Scorer

from tests.benchmarks.memory import reset_peak_mb, status_mb


def main() -> None:
    setup = json.loads(sys.stdin.readline())
    torch.set_num_threads(setup["threads"])
    scorer = Scorer(setup["model"], device="cpu", dtype="float32", max_ctx_tokens=100_000, max_ans_tokens=100_000)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(scorer, json.loads(line))), flush=True)


def answer(scorer: Any, given: dict[str, Any]) -> dict[str, float]:
    """Score one case with the passages as the chunks, whatever gasp-rag would have cut itself."""
    case = Case.from_texts(given["context"], given["answer"], given["query"])
    case.chunk_spans = [tuple(span) for span in given["chunks"]]
    before_mb = reset_peak_mb()
    started = time.perf_counter()
    scorer.score(case, leave_one_out=given["leave_one_out"])
    return {"seconds": time.perf_counter() - started, "peak_mb": status_mb("VmHWM") - before_mb}


if __name__ == "__main__":
    main()
