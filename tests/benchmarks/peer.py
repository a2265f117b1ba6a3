"""Our numbers beside those of gasp-rag 0.2.1, on the same text, model and dtype: `make bench-peer`.

Compares the log-probability of every answer token under every prompt, then the features of every sentence, first with
gasp-rag's rule for which token belongs to which sentence, then with ours. Writes build/bench/peer.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from gasp_core.divergence import jensen_shannon, token_scores
from gasp_core.features import assign_tokens
from gasp_core.grounding import Chunk, Exchange, Passage, Sentence, UnitKind
from gasp_core.model import LanguageModel, load_model
from gasp_core.packaged import PACKAGED_MODEL, cache_directory, resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits, Plan, each_group, plan_exchange
from gasp_core.template import GASP_RAG

TOLERANCE_NATS = 1e-4
SAMPLES = Path("worker/samples.jsonl")
OUTPUT = Path("build/bench/peer.json")
MIN_TOKENS = 3


@dataclass(frozen=True, slots=True)
class Ours:
    """Token scores (variants, A) of one case with the plan they belong to."""

    plan: Plan
    log_probabilities: Tensor
    divergences: Tensor


def main(
    path: Annotated[Path, typer.Argument(help="Exchanges with query or question, passages and answer.")] = SAMPLES,
    limit: Annotated[int, typer.Option(min=1)] = 20,
) -> None:
    """Compare and report; the exit status says whether the log-probabilities agree."""
    cases = read_cases(path, limit)
    folder = resolve_model(PACKAGED_MODEL)
    peers = ask_peer(folder, cases)
    model = load_model(folder, device="cpu", dtype="float32")
    rows = [compare(model, case, peer) for case, peer in zip(cases, peers, strict=True)]
    report = {name: max(row[name] for row in rows) for name in rows[0] if not name.startswith("n_")}
    report |= {name: sum(row[name] for row in rows) for name in rows[0] if name.startswith("n_")}
    report["jsd_of_equal_distributions"] = equal_divergence(model)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, value in report.items():
        print(f"{name:<44} {value:.3g}" if isinstance(value, float) else f"{name:<44} {value}")
    raise SystemExit(0 if report["log_probability_difference"] <= TOLERANCE_NATS else 1)


def read_cases(path: Path, limit: int) -> list[dict[str, str]]:
    """The first exchanges of the file, their passages joined to one context as gasp-rag takes it."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:limit]]
    return [
        {
            "context": "\n\n".join(text if isinstance(text, str) else text["text"] for text in row["passages"]),
            "answer": row["answer"],
            "query": row.get("question") or row.get("query") or "",
        }
        for row in rows
    ]


def ask_peer(folder: str, cases: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Run gasp-rag in a process of its own, with the same torch and transformers."""
    peer = cache_directory() / "gasp-rag"
    environment = {**os.environ, "PYTHONPATH": str(peer)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("peer_side.py")],
        input=json.dumps({"model": folder, "cases": cases}),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"gasp-rag did not run (make bench-peer installs it): {done.stderr[-2000:]}")
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


@torch.inference_mode()
def score(model: LanguageModel, case: dict[str, str], peer: dict[str, Any]) -> Ours:
    """Our token scores with gasp-rag's prompt and chunks."""
    chunks = [Chunk(0, start, end, group) for group, (start, end) in enumerate(peer["chunks"])]
    exchange = Exchange(case["query"], (Passage("context", case["context"]),), case["answer"])
    plans = plan_exchange(exchange, chunks, model=model, template=GASP_RAG, limits=Limits(), removals=each_group)
    if len(plans) != 1:
        raise SystemExit("an exchange is too long for the model")
    (plan,) = plans
    (states,) = choose_passes(model).passes.answer_states([plan])
    return Ours(plan, *token_scores(model.logits, model.vocabulary, states, torch.tensor(plan.answer_ids)))


def compare(model: LanguageModel, case: dict[str, str], peer: dict[str, Any]) -> dict[str, float]:
    """The largest differences in one case, and counts."""
    ours = score(model, case, peer)
    theirs = torch.tensor(peer["log_probabilities"])
    sentences = [Sentence(start, end, UnitKind.PROSE) for start, end in peer["sentences"]]
    by_start = [
        [token for token, (start, _) in enumerate(ours.plan.answer_spans) if one.start <= start < one.end]
        for one in sentences
    ]
    by_first_visible = assign_tokens(case["answer"], sentences, ours.plan.answer_spans)
    moved = sum(len(set(right) - set(left)) for left, right in zip(by_start, by_first_visible, strict=True))
    return {
        "log_probability_difference": float((ours.log_probabilities - theirs).abs().max()),
        "gap_difference_with_their_token_rule": difference(ours, by_start, peer["features"]),
        "gap_difference_with_our_token_rule": difference(ours, by_first_visible, peer["features"]),
        "drop_difference_with_their_token_rule": drop_difference(ours, by_start, peer["features"]),
        "jsd_difference_with_their_token_rule": jsd_difference(ours, by_start, peer["features"]),
        "n_answers": 1,
        "n_tokens": len(ours.plan.answer_ids),
        "n_prompts": len(ours.plan.prompts),
        "n_sentences": len(sentences),
        "n_sentences_dropped_in_silence_by_gasp_rag": len(sentences) - len(peer["features"]),
        "n_words_that_gasp_rag_gives_to_the_sentence_before": moved,
    }


def mean(scores: Tensor, tokens: Sequence[int]) -> float:
    """Mean over some tokens, in float64."""
    return float(scores[list(tokens)].double().mean())


def difference(ours: Ours, members: Sequence[Sequence[int]], features: Sequence[dict[str, Any]]) -> float:
    """The largest difference in gap over the sentences that gasp-rag reports."""
    gap = ours.log_probabilities[0] - ours.log_probabilities[1]
    found = [abs(mean(gap, members[one["index"]]) - one["gap"]) for one in features if members[one["index"]]]
    return max(found, default=0.0)


def drop_difference(ours: Ours, members: Sequence[Sequence[int]], features: Sequence[dict[str, Any]]) -> float:
    """The largest difference in the drop of a chunk."""
    drops = ours.log_probabilities[0] - ours.log_probabilities[2:]
    return max(
        (
            abs(mean(drop, members[one["index"]]) - theirs)
            for one in features
            for drop, theirs in zip(drops, one["drops"], strict=True)
        ),
        default=0.0,
    )


def jsd_difference(ours: Ours, members: Sequence[Sequence[int]], features: Sequence[dict[str, Any]]) -> float:
    """The largest difference in the divergence from no context; gasp-rag has an epsilon inside its logarithm."""
    found = [abs(mean(ours.divergences[1], members[one["index"]]) - one["jsd"]) for one in features]
    return max(found, default=0.0)


@torch.inference_mode()
def equal_divergence(model: LanguageModel) -> float:
    """The largest divergence of the model's own distributions from themselves."""
    ids = torch.tensor([model.encode("The capital of France is Paris, and that of Italy is Rome.").ids])
    log_p = torch.log_softmax(model.logits(model.hidden(ids)[0]), -1)
    return float(jensen_shannon(log_p, log_p).max())


if __name__ == "__main__":
    typer.run(main)
