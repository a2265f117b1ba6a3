"""Where to put a first threshold: two-pass scores on labelled answers, ranked and cut at several bounds.

    python -m tests.benchmarks.threshold LABELLED.jsonl [--limit N] [--model NAME]

A line holds query, passages, answer and ``labels``: the unsupported character spans of the answer (start, end). Half of
the answers that are taken have such a span. A sentence counts as unsupported if a span overlaps it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.scorer import GroundingScorer

BOUNDS = [step / 20 for step in range(41)]


@dataclass(frozen=True, slots=True)
class Labelled:
    """One scored sentence and whether a person found it unsupported."""

    gap: float
    unsupported: bool


def main(
    path: Annotated[Path, typer.Argument(help="Labelled answers, as JSON lines.")],
    limit: Annotated[int, typer.Option(min=2, help="Answers to score, half of them with an unsupported span.")] = 160,
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
) -> None:
    """Score, then print the ranking quality and what each bound would flag."""
    scorer = GroundingScorer(load_model(resolve_model(model)))
    sentences: list[Labelled] = []
    for row in track(balanced(read_rows(path), limit), description="scoring"):
        sentences += labelled(row, scorer.score([exchange_of(row)])[0])
    bad = sum(sentence.unsupported for sentence in sentences)
    print(f"{scorer.identity.label}")
    print(f"{len(sentences)} sentences, {bad} unsupported; area under the ROC curve of gap: {area(sentences):.3f}")
    print(f"{'flag below':>10} {'flagged':>8} {'recall':>8} {'precision':>10} {'F1':>6}")
    for bound in BOUNDS:
        print(describe(sentences, bound))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of the file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def balanced(rows: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The first rows of each kind, as many of one as of the other."""
    halves = ([row for row in rows if row["labels"]], [row for row in rows if not row["labels"]])
    return [row for half in halves for row in half[: limit // 2]]


def exchange_of(row: dict[str, Any]) -> Exchange:
    """The row as the scorer takes it."""
    passages = tuple(Passage(str(number), text) for number, text in enumerate(row["passages"]))
    return Exchange(row["query"], passages, row["answer"])


def labelled(row: dict[str, Any], grounding: AnswerGrounding) -> list[Labelled]:
    """Its scored sentences with their labels."""
    spans = [(label["start"], label["end"]) for label in row["labels"]]
    return [
        Labelled(one.gap, any(start < one.sentence.end and one.sentence.start < end for start, end in spans))
        for one in grounding.sentences
        if one.gap is not None
    ]


def area(sentences: list[Labelled]) -> float:
    """The chance that an unsupported sentence scores below a supported one."""
    good = [sentence.gap for sentence in sentences if not sentence.unsupported]
    bad = [sentence.gap for sentence in sentences if sentence.unsupported]
    wins = sum((low < high) + 0.5 * (low == high) for low in bad for high in good)
    return wins / (len(good) * len(bad))


def describe(sentences: list[Labelled], bound: float) -> str:
    """What flagging below the bound would do."""
    flagged = [sentence for sentence in sentences if sentence.gap < bound]
    hits = sum(sentence.unsupported for sentence in flagged)
    recall = hits / sum(sentence.unsupported for sentence in sentences)
    precision = hits / len(flagged) if flagged else 0.0
    f1 = 2 * recall * precision / (recall + precision) if hits else 0.0
    return f"{bound:>10.2f} {len(flagged) / len(sentences):>8.1%} {recall:>8.1%} {precision:>10.1%} {f1:>6.3f}"


if __name__ == "__main__":
    typer.run(main)
