"""The ``gasp`` command: score a file of answers without a service."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gasp_core.errors import GaspError
from gasp_core.grounding import AnswerGrounding, Exchange, Method, SentenceGrounding
from gasp_core.items import Item, read_items, require_writable, write_records
from gasp_core.packaged import PACKAGED_MODEL

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Grounding scores for the sentences of RAG answers.")

# Exchanges handed to the scorer at once; the scorer batches by tokens itself.
GROUP = 4


class Feature(StrEnum):
    """What ``sensitivity`` reports."""

    MAX_DROP = "max_drop"
    GAP = "gap"
    MEAN_DROP = "mean_drop"
    TOP2_DROP = "top2_drop"
    MAX_JSD = "max_jsd"
    JSD_NO_CONTEXT = "jsd_noctx"


@app.callback()
def _commands() -> None:
    """Keep `detect` a command of its own: more are to come."""


@app.command()
def detect(
    *,
    source: Annotated[
        Path, typer.Option("--input", help="A .jsonl or .csv file with context (or passages), answer and query.")
    ],
    output: Annotated[Path, typer.Option(help="A .jsonl or .csv file for the results, one row per sentence.")],
    model: Annotated[str, typer.Option(help="A causal language model by hub name or folder.")] = PACKAGED_MODEL,
    k_chunks: Annotated[int, typer.Option(min=1, help="Chunks that a single context is grouped into.")] = 5,
    threshold: Annotated[float | None, typer.Option(help="Flag sentences whose sensitivity is below.")] = None,
    economical: Annotated[bool, typer.Option("--economical", help="Two passes only: quicker, no attribution.")] = False,
    feature: Annotated[Feature, typer.Option(help="The feature reported as sensitivity.")] = Feature.MAX_DROP,
    max_ctx_tokens: Annotated[int, typer.Option(min=1, help="Context tokens that are read.")] = 1800,
    max_ans_tokens: Annotated[int, typer.Option(min=1, help="Answer tokens that are scored.")] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
) -> None:
    """Score every sentence of every answer in a file."""
    # Seconds to import, which --help need not wait for.
    from gasp_core.model import load_model
    from gasp_core.packaged import resolve_model
    from gasp_core.plan import Limits
    from gasp_core.scorer import GroundingScorer

    # A wrong path is better known before the hours of scoring than after.
    require_writable(str(output))
    items = read_items(str(source))
    scorer = GroundingScorer(
        load_model(resolve_model(model), device=device, dtype=dtype),
        limits=Limits(max_context_tokens=max_ctx_tokens, max_answer_tokens=max_ans_tokens),
        max_chunks=k_chunks,
    )
    method = Method.TWO_PASS if economical else Method.LEAVE_ONE_OUT
    if economical and feature is not Feature.JSD_NO_CONTEXT:
        feature = Feature.GAP
    records: list[dict[str, Any]] = []
    with _progress() as progress:
        task = progress.add_task("scoring", total=len(items))
        for start in range(0, len(items), GROUP):
            group = items[start : start + GROUP]
            for offset, grounding in enumerate(scorer.score([item.exchange for item in group], method)):
                records += _records(start + offset, group[offset], grounding, feature, threshold)
                progress.advance(task)
    write_records(records, str(output))
    typer.echo(f"wrote {len(records)} sentence results from {len(items)} answers to {output}")


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _records(
    item_id: int, item: Item, grounding: AnswerGrounding, feature: Feature, threshold: float | None
) -> list[dict[str, Any]]:
    return [_record(item_id, item, grounding, result, feature, threshold) for result in grounding.sentences]


def _record(
    item_id: int,
    item: Item,
    grounding: AnswerGrounding,
    result: SentenceGrounding,
    feature: Feature,
    threshold: float | None,
) -> dict[str, Any]:
    features = features_of(result)
    sensitivity = features.get(feature)
    span = result.sentence
    record = {
        "item_id": item_id,
        "sent_index": result.index,
        "sentence": item.exchange.answer[span.start : span.end],
        "start": span.start,
        "end": span.end,
        "sensitivity": sensitivity,
        "flagged": None if threshold is None or sensitivity is None else sensitivity < threshold,
        "supporting_chunk": _chunk_text(item.exchange, grounding, result.supporting_chunk),
        "skip_reason": result.skip_reason,
        "context_truncated": grounding.truncation.context_truncated,
        "answer_truncated": grounding.truncation.answer_truncated,
        "n_tokens": result.n_tokens,
        "surprisal": result.surprisal,
    }
    record |= {f"feat_{name}": value for name, value in features.items()}
    return record | ({"label": item.row["label"]} if "label" in item.row else {})


def features_of(result: SentenceGrounding) -> dict[str, float | None]:
    """Every feature by its name in the peer's files; None where it was not computed."""
    drops = sorted((drop.drop for drop in result.drops), reverse=True)
    return {
        Feature.GAP: result.gap,
        Feature.JSD_NO_CONTEXT: result.jsd_no_context,
        Feature.MAX_DROP: drops[0] if drops else None,
        Feature.MEAN_DROP: _mean(drops),
        Feature.TOP2_DROP: _mean(drops[:2]),
        Feature.MAX_JSD: max((drop.jsd for drop in result.drops), default=None),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _chunk_text(exchange: Exchange, grounding: AnswerGrounding, chunk: int | None) -> str | None:
    if chunk is None:
        return None
    place = grounding.chunks[chunk]
    return exchange.passages[place.passage].text[place.start : place.end]


def main() -> None:
    """Run the command; an error that we know ends it with one line that says what to do."""
    try:
        app()
    except GaspError as error:
        typer.echo(f"gasp: {error}", err=True)
        raise SystemExit(2) from None
