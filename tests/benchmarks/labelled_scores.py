"""The scores of labelled answers, made once and kept: what the calibration benchmark draws its traffic from.

    python -m tests.benchmarks.labelled_scores [--folder FOLDER] [--dtype bfloat16]

Every answer of FOLDER/ragtruth_qa_dev.jsonl and FOLDER/lfqa_dev.jsonl is scored in two passes and becomes a line under
$GASP_CACHE_DIR/scores, in a file named by scorer identity and data file. What is there already is not scored again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.progress import track

from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, cache_directory, resolve_model
from gasp_core.scorer import GroundingScorer

FOLDER = Path(__file__).parents[3] / "shared" / "data"
FILES = ("ragtruth_qa_dev", "lfqa_dev")
DTYPE = "bfloat16"  # several times as quick as float32 where the CPU has it


def main(
    folder: Annotated[Path, typer.Option(help="Where the labelled answers are.")] = FOLDER,
    dtype: Annotated[str, typer.Option(help="The model's number format.")] = DTYPE,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the model.")] = 1,
) -> None:
    """Score what is not scored yet."""
    torch.set_num_threads(threads)
    for name in FILES:
        print(f"{name}: {len(scored_answers(folder / f'{name}.jsonl', dtype))} answers scored")


def scored_answers(path: Path, dtype: str = DTYPE) -> list[dict[str, Any]]:
    """The answers of the file with the scores of their sentences, from the cache as far as they are there."""
    scorer = GroundingScorer(load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype=dtype))
    cached = _cache(path, scorer.identity.label)
    known = {line["id"] for line in _lines(cached)}
    missing = [row for row in read_rows(path) if row["id"] not in known]
    with cached.open("a", encoding="utf-8") as file:
        for row in track(missing, description=f"scoring {path.stem}", disable=not missing):
            file.write(json.dumps(_scored(row, scorer.score([exchange_of(row)])[0])) + "\n")
            file.flush()
    return list(_lines(cached))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of the file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def exchange_of(row: dict[str, Any]) -> Exchange:
    """The row as the scorer takes it."""
    passages = tuple(Passage(str(number), text) for number, text in enumerate(row["passages"]))
    return Exchange(row["query"], passages, row["answer"])


def _cache(path: Path, label: str) -> Path:
    """Where the scores of that file by that scorer are kept."""
    digest = hashlib.sha256(label.encode() + path.read_bytes()).hexdigest()[:12]
    folder = cache_directory() / "scores"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{path.stem}-{digest}.jsonl"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of the file; one that was broken off is left out, and its answer scored again."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("}\n"):
                yield json.loads(line)


def unsupported_spans(row: dict[str, Any]) -> list[dict[str, Any]]:
    """What people found unsupported: spans where the data has them, else whole sentences."""
    return row["labels"] if "labels" in row else [label for label in row["sentence_labels"] if label["label"]]


def _scored(row: dict[str, Any], grounding: AnswerGrounding) -> dict[str, Any]:
    spans = [(label["start"], label["end"]) for label in unsupported_spans(row)]
    return {
        "id": row["id"],
        "source_id": row["source_id"],
        "sentences": [
            {
                "gap": one.gap,
                "jsd_no_context": one.jsd_no_context,
                "surprisal": one.surprisal,
                "n_tokens": one.n_tokens,
                "span": [one.sentence.start, one.sentence.end],
                "unsupported": any(start < one.sentence.end and one.sentence.start < end for start, end in spans),
            }
            for one in grounding.sentences
            if one.gap is not None
        ],
    }


if __name__ == "__main__":
    typer.run(main)
