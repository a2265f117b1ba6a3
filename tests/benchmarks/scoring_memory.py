"""Peak resident memory of one exact leave-one-out over the loaded model, in MB, for one dtype and size of context."""

from __future__ import annotations

import sys

import torch

from gasp_core.grounding import Method
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.scorer import GroundingScorer
from tests.benchmarks.composed import composed_exchanges
from tests.benchmarks.memory import reset_peak_mb, status_mb

PASSAGES = 5


def main() -> None:
    dtype, context_tokens = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    model = load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype=dtype)
    scorer = GroundingScorer(model)
    small, wanted = (
        composed_exchanges(model, count=1, passages=PASSAGES, passage_tokens=tokens, answer_tokens=120)
        for tokens in (20, context_tokens // PASSAGES)
    )
    # Brings every weight into memory.
    scorer.score(small, Method.LEAVE_ONE_OUT)
    before_mb = reset_peak_mb()
    scorer.score(wanted, Method.LEAVE_ONE_OUT)
    print(f"{status_mb('VmHWM') - before_mb:.0f}")


if __name__ == "__main__":
    main()
