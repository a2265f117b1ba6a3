"""How cost and memory of exact leave-one-out grow with the context and its passages: `make bench-growth`.

Ours in float32 and bfloat16 beside gasp-rag 0.2.1 in float32, each cell in a process of its own. Writes
build/bench/growth.json and prints a table. What stands in the file already is not measured again: delete it to begin
anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from tests.benchmarks.composed import composed_exchanges
from tests.benchmarks.one_exchange import ANSWER_TOKENS, measure
from tests.benchmarks.peer_process import peer_process

OUTPUT = Path("build/bench/growth.json")
# The last one leaves room for question and answer in the model's 8,192.
CONTEXT_TOKENS = (1_000, 2_000, 4_000, 7_600)
PASSAGES = (3, 5, 10, 20)
WAYS = ("gasp-rag float32", "ours float32", "ours bfloat16")


def main(threads: Annotated[int, typer.Option(min=1)] = 1, cells: Annotated[int, typer.Option(min=1)] = 16) -> None:
    """Measure the first ``cells`` of the table, smallest contexts first; each is printed and kept as it is done."""
    folder = resolve_model(PACKAGED_MODEL)
    wanted = [(tokens, passages) for tokens in CONTEXT_TOKENS for passages in PASSAGES][:cells]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    print(f"| context tokens | K | {' | '.join(f'{way}: s, MB' for way in WAYS)} | times as fast |")
    print("|---|---|" + "---|" * (len(WAYS) + 1), flush=True)
    rows: list[dict[str, float]] = json.loads(OUTPUT.read_text("utf-8")) if OUTPUT.exists() else []
    measured = {(row["context_tokens"], row["passages"]): row for row in rows if row["threads"] == threads}
    for size in wanted:
        if size not in measured:
            measured[size] = cell(folder, *size, threads)
            rows.append(measured[size])
            OUTPUT.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        print(line(measured[size]), flush=True)


def line(row: dict[str, float]) -> str:
    """A row of the table, for Markdown."""
    costs = [f"{row[f'{way} seconds']:.1f}, {row[f'{way} peak_mb']:.0f}" for way in WAYS]
    ratios = [f"{row[f'{WAYS[0]} seconds'] / row[f'{way} seconds']:.1f}" for way in WAYS[1:]]
    return f"| {row['context_tokens']:,.0f} | {row['passages']:.0f} | {' | '.join(costs)} | {' / '.join(ratios)} |"


def cell(folder: str, context_tokens: int, passages: int, threads: int) -> dict[str, float]:
    """One size, the three ways one after the other."""
    row: dict[str, float] = {"context_tokens": context_tokens, "passages": passages, "threads": threads}
    model = load_model(folder, device="cpu")
    small, wanted = (
        composed_exchanges(model, count=1, passages=passages, passage_tokens=tokens, answer_tokens=ANSWER_TOKENS)[0]
        for tokens in (20, context_tokens // passages)
    )
    del model
    with peer_process(folder, threads) as peer:
        peer.time(small, leave_one_out=True)
        measured = {WAYS[0]: peer.time(wanted, leave_one_out=True)}
    measured[WAYS[1]] = measure("float32", passages, context_tokens, threads)
    measured[WAYS[2]] = measure("bfloat16", passages, context_tokens, threads)
    return row | {f"{way} {name}": value for way, found in measured.items() for name, value in found.items()}


if __name__ == "__main__":
    typer.run(main)
