"""What gasp-rag 0.2.1 makes of each case: run by tests.benchmarks.peer in a process where that package can be imported.

Reads {"model", "cases": [{context, answer, query}]} from standard input and writes, per case, its spans, its token
log-probabilities under every prompt and its sentence features.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from gasp import Case, Scorer

CHUNKS = 5


def read_case(scorer: Any, given: dict[str, str]) -> dict[str, Any]:
    case = Case.from_texts(given["context"], given["answer"], given["query"], k_chunks=CHUNKS)
    answer = scorer.tokenizer(case.answer, return_offsets_mapping=True, add_special_tokens=False)
    ids = scorer._torch.tensor(answer["input_ids"])
    contexts = [case.context, "", *(case.context[:start] + case.context[end:] for start, end in case.chunk_spans)]
    scored = [scorer._token_logprobs(scorer._prompt(context, case.query), ids) for context in contexts]
    return {
        "sentences": [list(span) for span in case.sent_spans],
        "chunks": [list(span) for span in case.chunk_spans],
        "log_probabilities": [target.tolist() for target, _, _ in scored],
        "features": [
            {
                "index": one.index,
                "n_tokens": one.n_tokens,
                "gap": one.gap,
                "jsd": one.jsd_noctx,
                "drops": one.chunk_drops,
            }
            for one in scorer.score(case)
        ],
    }


def main() -> None:
    given = json.load(sys.stdin)
    scorer = Scorer(given["model"], device="cpu", dtype="float32", max_ctx_tokens=100_000, max_ans_tokens=100_000)
    json.dump([read_case(scorer, case) for case in given["cases"]], sys.stdout)


if __name__ == "__main__":
    main()
